import { describe, expect, test } from "vitest";
import { applied, changesOf, countOf, meanwhile, NOTHING_PENDING, toggled, without } from "./pending.ts";

const cell = (roleId: string, slug: string, isGranted = false) => ({
  roleId,
  roleName: `name of ${roleId}`,
  slug,
  isGranted,
});

describe("pending changes", () => {
  test("pending permission changes are grouped by role, and toggling a cell twice removes its change", () => {
    let pending = toggled(NOTHING_PENDING, cell("r2", "b"));
    pending = toggled(pending, cell("r1", "a", true));
    pending = toggled(pending, cell("r1", "c"));
    pending = toggled(pending, cell("r1", "b"));
    expect(countOf(pending)).toBe(4);
    expect(changesOf(pending)).toEqual([
      { roleId: "r1", roleName: "name of r1", added: ["b", "c"], removed: ["a"] },
      { roleId: "r2", roleName: "name of r2", added: ["b"], removed: [] },
    ]);
    pending = toggled(pending, cell("r2", "b"));
    expect(changesOf(pending).map(({ roleId }) => roleId)).toEqual(["r1"]);
    expect(without(pending, "r1")).toEqual(NOTHING_PENDING);
  });

  test("pending permission changes are applied on top of concurrent changes", () => {
    const change = { roleId: "r", roleName: "r", added: ["b", "C"], removed: ["a", "gone"] };
    expect(applied(["A", "c", "others"], change)).toEqual(["c", "others", "b"]);
    expect(applied([], change)).toEqual(["b", "C"]);
  });
});

test("permission changes of others are found by comparing two reads, regardless of order and letter case", () => {
  expect(meanwhile(["a", "b"], ["B", "A"])).toBeUndefined();
  expect(meanwhile(["a", "b"], ["b", "c"])).toEqual({ added: ["c"], removed: ["a"] });
});
