import { expect, test } from "vitest";
import { toDataPlaneStatus } from "./enforced.ts";
import { overshot } from "./limits-exceeded.ts";

const HOUR_MS = 3_600_000;
const fine = { pods: 3, current: 3, oldestLagMs: 10 };
const exceeded = (lastAgoMs: number) => ({ ...fine, overshot: { units: 40, percent: 134, lastAgoMs } });
const earlier = { type: "LimitsExceeded", status: "True", reason: "CountersUnavailable", message: "" } as const;
const previous = [{ ...earlier, lastTransitionTime: "2026-01-01T00:00:00Z" }];

test("a policy whose limits were exceeded in the last hour is LimitsExceeded, and says by how much", () => {
  const condition = overshot(exceeded(HOUR_MS), { previous: [] });
  expect(condition).toMatchObject({
    type: "LimitsExceeded",
    status: "True",
    reason: "CountersUnavailable",
    alerts: true,
  });
  expect(condition?.message).toContain("40 units beyond limits");
  expect(condition?.message).toContain("up to 134 % of a limit");
  expect(overshot({ ...fine, overshot: { units: 1, percent: 1, lastAgoMs: 0 } }, { previous })?.message).toContain(
    "1 unit beyond",
  );
});

test("the status keeps the numbers after that hour, and the condition ends", () => {
  const later = exceeded(HOUR_MS + 1);
  expect(overshot(later, { previous })).toMatchObject({ type: "LimitsExceeded", status: "False", alerts: true });
  expect(toDataPlaneStatus(later)).toMatchObject({ overshotUnits: 40, overshotPercent: 134 });
});

test("most policies never have the condition, and what is not known changes none", () => {
  expect(overshot(fine, { previous: [] })).toBeUndefined();
  expect(overshot(exceeded(HOUR_MS + 1), { previous: [] })).toBeUndefined();
  expect(overshot(undefined, { previous })).toBeUndefined();
  expect(toDataPlaneStatus(fine)).not.toHaveProperty("overshotUnits");
});
