import { ownOf } from "../claims.ts";
import type { FurtherCondition } from "../plan.ts";
import { unsupported } from "./enforced.ts";
import { limitsExceeded } from "./limits-exceeded.ts";
import type { ObservedPolicy } from "./observed.ts";
import { stale } from "./stale.ts";

/** Uses the active policy, which may differ from the manifest. */
export function ofSidecars(observed: ObservedPolicy): FurtherCondition[] {
  const stored = ownOf(observed);
  const onStale = stored?.policy?.onStale;
  return [
    onStale === undefined ? undefined : stale(stored?.dataPlane, onStale, observed),
    unsupported(stored?.dataPlane, observed),
    limitsExceeded(stored?.dataPlane, observed),
  ].filter((condition) => condition !== undefined);
}
