import { expect, test } from "vitest";
import { toTextLine } from "./log-text.ts";

const line = (entry: object) =>
  toTextLine(JSON.stringify({ level: 40, time: Date.UTC(2026, 0, 2, 3, 4, 5, 6), name: "operator", ...entry }));

test("log line has time, level, message and fields", () => {
  expect(line({ msg: "reconcile failed", kind: "Role", failures: 2, object: { namespace: "shop", name: "a b" } })).toBe(
    '2026-01-02T03:04:05.006Z WARN  reconcile failed kind=Role failures=2 object={"namespace":"shop","name":"a b"}',
  );
});

test("log line of an error is followed by its causes, indented", () => {
  const err = { message: "m", stack: "Error: m\n    at f (a.ts:1)", cause: { message: "because" } };
  expect(line({ msg: "failed", err }).split("\n").slice(1)).toEqual([
    "    Error: m",
    "    at f (a.ts:1)",
    "    caused by",
    "    because",
  ]);
});

test("client text in a log cannot start a new line", () => {
  expect(line({ msg: 'say "a"\nFATAL', kind: "x\ny" })).toBe(
    '2026-01-02T03:04:05.006Z WARN  say "a"\\nFATAL kind="x\\ny"',
  );
});

test("client text in a log contains no terminal control characters, even those that JSON does not escape", () => {
  const said = line({ msg: "a\u009b2Jb", kind: "x\u202ey\u007f", err: { message: "c\u001b[31m\u2066" } });
  expect(said).toMatch(/ a\\u009b2Jb kind="x\\u202ey\\u007f"\n {4}c\\u001b\[31m\\u2066$/);
});

test.each(["not JSON", "7", "null"])("log keeps %s unchanged", (text) => expect(toTextLine(text)).toBe(text));
