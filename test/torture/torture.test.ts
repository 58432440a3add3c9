import { rm } from "node:fs/promises";
import { expect, test } from "vitest";
import { FAULT_KINDS } from "./plan.ts";
import { toTable } from "./report.ts";
import { torture } from "./torture.ts";

/** More than several pages of each list that the relay reads. */
const KEYS = 7_500;
const TIMEOUT_MS = 300_000;

test("system keeps every promise during one minute of torture", {
  timeout: TIMEOUT_MS,
}, async ({ signal }) => {
  const lines: string[] = [];
  const report = await torture({
    ...{ seed: 20, minutes: 1, kinds: FAULT_KINDS, keys: KEYS, apiServers: 2, signal },
    onProgress: (line) => lines.push(line),
  });
  const { violations, folder, keys, changes, swept, revocations, faults } = report;
  expect(violations.length, `${lines.join("\n")}\n${toTable(report)}\njournal and logs: ${folder}`).toBe(0);
  // Proves that something happened.
  expect(keys).toBeGreaterThan(5_000);
  expect(changes.acknowledged - keys).toBeGreaterThan(50);
  expect(swept).toBeGreaterThan(5_000);
  expect(revocations.count).toBeGreaterThan(20);
  expect(Object.keys(faults).length).toBeGreaterThan(FAULT_KINDS.length / 2);
  await rm(folder, { recursive: true, force: true });
});
