import { expect, test } from "vitest";
import { everyProcedure } from "../../api-server/test/every-procedure.ts";
import { NOTICED, UNNOTICED } from "./noticed-changes.ts";
import { V1_NOTICED, V1_UNNOTICED } from "./noticed-changes-v1.ts";

test("propagation table states the effect of every change on pods", () => {
  const noticed = { ...NOTICED, ...V1_NOTICED };
  const changes = everyProcedure.filter(({ effect }) => effect === "change").map(({ path }) => path);
  const listed = [noticed, UNNOTICED, V1_UNNOTICED].flatMap(Object.keys);
  const missing = changes.filter((path) => !listed.includes(path));
  if (missing.length > 0) {
    throw new Error(
      `what pods notice of ${missing.join(", ")} is not said in test/faults/noticed-changes.ts, or noticed-changes-v1.ts`,
    );
  }
  // Each change is listed in exactly one of the two tables.
  expect(listed.toSorted()).toEqual(changes.toSorted());
  for (const [path, cases] of Object.entries(noticed)) expect(Object.keys(cases), path).not.toEqual([]);
});
