import { expect, test } from "vitest";
import { aCase, aChange, created, found } from "./a-case.ts";
import { checkKept } from "./kept.ts";

const note = (seconds: number, n: number) => aChange(seconds, { kind: "note", note: n });

test.each([
  { name: "a key that was made is not there", changes: [created(0)], state: undefined, violations: 1 },
  { name: "a key is as it was made", changes: [created(0)], state: found(), violations: 0 },
  {
    name: "the last note is lost",
    changes: [created(0), note(1, 1), note(2, 2)],
    state: found({ note: 1 }),
    violations: 1,
  },
  {
    name: "a deleted key is there",
    changes: [created(0), aChange(1, { kind: "delete" })],
    state: found(),
    violations: 1,
  },
  {
    name: "a deleted key is marked so",
    changes: [created(0), aChange(1, { kind: "delete" })],
    state: found({ exists: false }),
    violations: 0,
  },
  {
    name: "a permission that was taken is there",
    changes: [created(0), aChange(1, { kind: "forbid" })],
    state: found(),
    violations: 1,
  },
  {
    name: "a key was changed without a request",
    changes: [created(0)],
    state: found({ enabled: false }),
    violations: 1,
  },
])("durability checker finds $violations violations: $name", ({ changes, state, violations }) => {
  const keys = new Map(state === undefined ? [] : [["key-1", state]]);
  expect(checkKept(aCase({ changes }, { keys }))).toHaveLength(violations);
});

test("durability checker uses audit entries to decide unanswered changes", () => {
  const unknown = aChange(1, { kind: "disable" }, { outcome: "unknown" });
  const count = (enabled: boolean, isInAudit: boolean) => {
    const audit = isInAudit ? [{ id: unknown.id, event: "key.update", count: 1 }] : [];
    const keys = new Map([["key-1", found({ enabled })]]);
    return checkKept(aCase({ changes: [created(0), unknown] }, { keys, audit })).length;
  };
  expect([count(true, false), count(false, true)]).toEqual([0, 0]);
  expect([count(true, true), count(false, false)]).toEqual([1, 1]);
});

test.each([
  { subject: "role", key: "role main shift-0" },
  { subject: "permission", key: "permission second bulk.0" },
] as const)("durability checker covers grants of a $subject", ({ subject, key }) => {
  const made = aChange(0, { kind: "permit" }, { subject, key });
  const taken = aChange(1, { kind: "forbid" }, { subject, key });
  const count = (changes: (typeof made)[], granting: string[]) =>
    checkKept(aCase({ changes }, { granting: new Set(granting) })).length;
  expect([count([made], [key]), count([made], [])]).toEqual([0, 1]);
  expect([count([made, taken], []), count([made, taken], [key])]).toEqual([0, 1]);
});

test("durability checker rejects a denied change of an exclusively owned key", () => {
  const refused = aChange(1, { kind: "disable" }, { outcome: "refused", status: 404 });
  const [violation, ...more] = checkKept(
    aCase({ changes: [created(0), refused] }, { keys: new Map([["key-1", found()]]) }),
  );
  expect(violation?.what).toContain("404");
  expect(more).toEqual([]);
});
