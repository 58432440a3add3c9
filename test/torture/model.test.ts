import { expect, test } from "vitest";
import {
  admissibleEras,
  applyChange,
  type Change,
  eras,
  expectedVerdict,
  type History,
  type KeyState,
  type Needs,
} from "./model.ts";

const made: KeyState = { exists: true, enabled: true, expired: false, permitted: true, note: 0 };

test.each([
  { change: { kind: "disable" }, state: { ...made, enabled: false }, open: "refused", guarded: "refused" },
  { change: { kind: "expire" }, state: { ...made, expired: true }, open: "refused", guarded: "refused" },
  { change: { kind: "forbid" }, state: { ...made, permitted: false }, open: "valid", guarded: "forbidden" },
  { change: { kind: "note", note: 3 }, state: { ...made, note: 3 }, open: "valid", guarded: "valid" },
] as const)("torture model has the expected state after $change.kind", ({ change, state, open, guarded }) => {
  expect(applyChange(made, change)).toEqual(state);
  expect(expectedVerdict(state, { needs: "none", granted: false })).toBe(open);
  expect(expectedVerdict(state, { needs: "own", granted: false })).toBe(guarded);
});

test("torture model distinguishes role grants from direct permissions", () => {
  const verdicts = (needs: Needs) =>
    [made, { ...made, permitted: false }].flatMap((state) =>
      [true, false].map((granted) => expectedVerdict(state, { needs, granted })),
    );
  expect(verdicts("own")).toEqual(["valid", "valid", "valid", "forbidden"]);
  expect(verdicts("shared")).toEqual(["valid", "forbidden", "valid", "forbidden"]);
});

const history = (...changes: Array<[sentMs: number, acknowledgedMs: number | undefined, change: Change]>): History => ({
  key: "key-1",
  workspace: "main",
  changes: changes.map(([sentMs, acknowledgedMs, change], n) => {
    return { id: String(n), change, via: "api-1", sentMs, acknowledgedMs };
  }),
});

const changed = history([100, 110, { kind: "create", permitted: true }], [200, 210, { kind: "disable" }]);

test("torture model has a period before the first change and after each", () => {
  expect(eras(changed).map(({ state }) => [state.exists, state.enabled])).toEqual([
    [false, true],
    [true, true],
    [true, false],
  ]);
});

test.each([
  { name: "before any change was sent", asked: { sentMs: 50, answeredMs: 60, knewUpToMs: 0 }, admissible: [0] },
  { name: "while the change was made", asked: { sentMs: 50, answeredMs: 105, knewUpToMs: 0 }, admissible: [0, 1] },
  { name: "known to be made", asked: { sentMs: 150, answeredMs: 160, knewUpToMs: 140 }, admissible: [1] },
  { name: "known to the very instant", asked: { sentMs: 150, answeredMs: 160, knewUpToMs: 110 }, admissible: [0, 1] },
  { name: "nothing known", asked: { sentMs: 300, answeredMs: 310, knewUpToMs: 0 }, admissible: [0, 1, 2] },
  { name: "all known", asked: { sentMs: 300, answeredMs: 310, knewUpToMs: 290 }, admissible: [2] },
])("torture model admits only the states $admissible for a response: $name", ({ asked, admissible }) => {
  const all = eras(changed).map(({ begun }) => begun);
  const found = admissibleEras(changed, { process: "sidecar-1", ...asked });
  expect(found.map(({ begun }) => all.indexOf(begun))).toEqual(admissible);
});

test("torture model assumes that the acknowledging process knows its change", () => {
  const asked = { process: "api-1", sentMs: 220, answeredMs: 230, knewUpToMs: Number.NEGATIVE_INFINITY };
  expect(admissibleEras(changed, asked)).toHaveLength(1);
  expect(admissibleEras(changed, { ...asked, sentMs: 205 })).toHaveLength(2);
});
