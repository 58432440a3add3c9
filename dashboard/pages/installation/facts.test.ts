import { expect, test } from "vitest";
import { bytesText, factText, labelOf } from "./facts.ts";

test.each([
  ["memoryMaxBytes", 268_435_456, "memory max", "256 MiB"],
  ["heartbeatAgeMs", 850, "heartbeat age", "850 ms"],
  ["auditDays", 0, "audit", "indefinitely"],
  ["deletedDays", 30, "deleted", "30 days"],
  ["outboxMarks", 100_000, "outbox marks", "100,000"],
  ["complete", true, "complete", "yes"],
  ["key-2026", "7 keys, encrypts", "key-2026", "7 keys, encrypts"],
])("installation page shows fact %s with its unit", (name, value, label, text) => {
  expect([labelOf(name), factText(name, value)]).toEqual([label, text]);
});

test.each([
  [0, "0 B"],
  [1023, "1,023 B"],
  [1536, "1.5 KiB"],
  [2 ** 60, "1,048,576 TiB"],
])("size of %d bytes is displayed as %s", (bytes, text) => expect(bytesText(bytes)).toBe(text));
