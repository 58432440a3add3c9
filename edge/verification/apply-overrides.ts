import type { LimitCharge } from "../../core/charges.ts";
import { applyOverride } from "../../core/ratelimits/overrides.ts";
import type { OverrideRecord } from "../../core/records.ts";
import { allOf, type Lookup, type MaybePromise, type Projection } from "../projection/contract.ts";

export interface AppliedLimit {
  readonly charge: LimitCharge;
  /** Active override; `undefined` if the limit is charged as requested. */
  readonly override: OverrideRecord | undefined;
}

export type AppliedLimits = { readonly limits: readonly AppliedLimit[] } | { readonly unusable: string };

/**
 * Returns the namespace limits with the active overrides applied, in order; synchronously if all overrides are cached. Returns `unusable`
 * if an override cannot be read now.
 */
export function applyOverrides(
  projection: Pick<Projection, "findOverride">,
  charges: readonly LimitCharge[],
): MaybePromise<AppliedLimits> {
  const found = allOf(
    charges.map(({ workspaceId, scope, identifier }) => projection.findOverride(workspaceId, scope.value, identifier)),
  );
  return found instanceof Promise ? found.then((late) => applyFound(charges, late)) : applyFound(charges, found);
}

function applyFound(charges: readonly LimitCharge[], found: readonly Lookup<OverrideRecord>[]): AppliedLimits {
  const limits: AppliedLimit[] = [];
  for (const [at, charge] of charges.entries()) {
    const lookup = found[at];
    if (lookup === undefined || lookup.status === "unusable") {
      return { unusable: lookup?.reason ?? "an override was not looked up" };
    }
    limits.push(
      lookup.status === "found"
        ? { charge: applyOverride(charge, lookup.value), override: lookup.value }
        : { charge, override: undefined },
    );
  }
  return { limits };
}
