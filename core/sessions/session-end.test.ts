import { expect, test } from "vitest";
import { endOf } from "./session-end.ts";

const session = { lastSeenAtMs: 1000, expiresAtMs: 5000, endedAtMs: null };

test.each([
  { name: "just opened", nowMs: 1000, end: undefined },
  { name: "in the last millisecond of being idle", nowMs: 3000, end: undefined },
  { name: "idle", nowMs: 3001, end: "idle" },
  { name: "too old is said before idle", nowMs: 5001, end: "tooOld" },
  { name: "in its last millisecond", of: { lastSeenAtMs: 4000 }, nowMs: 5000, end: undefined },
  { name: "too old, although in use", of: { lastSeenAtMs: 5000 }, nowMs: 5001, end: "tooOld" },
  { name: "signed out is said before the rest", of: { endedAtMs: 2000 }, nowMs: 9000, end: "signedOut" },
  { name: "signed out at the beginning of time", of: { endedAtMs: 0 }, nowMs: 1000, end: "signedOut" },
  { name: "with a clock that was set back", nowMs: 0, end: undefined },
])("session has the expected end reason $end: $name", ({ of = {}, nowMs, end }) => {
  expect(endOf({ ...session, ...of }, { idleMs: 2000, nowMs })).toBe(end);
});
