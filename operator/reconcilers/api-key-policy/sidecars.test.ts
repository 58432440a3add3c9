import { expect, test } from "vitest";
import { toDataPlaneStatus } from "./enforced.ts";
import { limitsExceeded } from "./sidecars.ts";

const HOUR_MS = 3_600_000;
const fine = { pods: 3, updated: 3, maxStalenessMs: 10 };
const exceeded = (lastAgoMs: number) => ({ ...fine, overAdmitted: { units: 40, percent: 134, lastAgoMs } });
const earlier = { type: "LimitsExceeded", status: "True", reason: "CountersUnavailable", message: "" } as const;
const previous = [{ ...earlier, lastTransitionTime: "2026-01-01T00:00:00Z" }];

test("policy that exceeded limits in the last hour has the LimitsExceeded condition", () => {
  const condition = limitsExceeded(exceeded(HOUR_MS), { previous: [] });
  expect(condition).toMatchObject({
    type: "LimitsExceeded",
    status: "True",
    reason: "CountersUnavailable",
    alerts: true,
  });
  expect(condition?.message).toContain("40 units beyond limits");
  expect(condition?.message).toContain("up to 134 % of a limit");
  expect(
    limitsExceeded({ ...fine, overAdmitted: { units: 1, percent: 1, lastAgoMs: 0 } }, { previous })?.message,
  ).toContain("1 unit beyond");
});

test("LimitsExceeded condition ends after an hour while the numbers remain in the status", () => {
  const later = exceeded(HOUR_MS + 1);
  expect(limitsExceeded(later, { previous })).toMatchObject({ type: "LimitsExceeded", status: "False", alerts: true });
  expect(toDataPlaneStatus(later)).toMatchObject({ overAdmittedUnits: 40, overAdmittedPercent: 134 });
});

test("LimitsExceeded condition is absent by default and unchanged when reports are unknown", () => {
  expect(limitsExceeded(fine, { previous: [] })).toBeUndefined();
  expect(limitsExceeded(exceeded(HOUR_MS + 1), { previous: [] })).toBeUndefined();
  expect(limitsExceeded(undefined, { previous })).toBeUndefined();
  expect(toDataPlaneStatus(fine)).not.toHaveProperty("overAdmittedUnits");
});
