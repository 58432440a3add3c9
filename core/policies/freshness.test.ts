import { expect, test } from "vitest";
import { checkFreshness } from "./freshness.ts";

const bounds = { afterMs: 30_000, denyAfterMs: 900_000 };

test.each([
  { stalenessMs: 0, Serve: "Fresh", Deny: "Fresh" },
  { stalenessMs: 30_000, Serve: "Fresh", Deny: "Fresh" },
  { stalenessMs: 30_001, Serve: "Stale", Deny: "Expired" },
  { stalenessMs: 900_000, Serve: "Stale", Deny: "Expired" },
  { stalenessMs: 900_001, Serve: "Expired", Deny: "Expired" },
  { stalenessMs: Number.POSITIVE_INFINITY, Serve: "Expired", Deny: "Expired" },
])(
  "freshness of data after $stalenessMs ms is $Serve with action Serve and $Deny with action Deny",
  ({ stalenessMs, Serve, Deny }) => {
    expect(checkFreshness({ ...bounds, action: "Serve" }, stalenessMs)).toBe(Serve);
    expect(checkFreshness({ ...bounds, action: "Deny" }, stalenessMs)).toBe(Deny);
  },
);
