import { expect, test } from "vitest";
import { procedures } from "../../api-server/v2/index.ts";
import { NOTICED, UNNOTICED } from "./noticed-changes.ts";

test("of every change it is said what pods notice of it, or why they cannot", () => {
  const changes = procedures.filter(({ effect }) => effect === "change").map(({ path }) => path);
  const listed = [...Object.keys(NOTICED), ...Object.keys(UNNOTICED)];
  const missing = changes.filter((path) => !listed.includes(path));
  if (missing.length > 0) {
    throw new Error(`what pods notice of ${missing.join(", ")} is not said in test/faults/noticed-changes.ts`);
  }
  // Each in one of the two, and nothing that is no change.
  expect(listed.toSorted()).toEqual(changes.toSorted());
  for (const [path, cases] of Object.entries(NOTICED)) expect(Object.keys(cases), path).not.toEqual([]);
});
