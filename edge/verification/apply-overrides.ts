import type { LimitCharge } from "../../core/charges.ts";
import { applyOverride } from "../../core/ratelimits/overrides.ts";
import type { OverrideRecord } from "../../core/records.ts";
import type { Projection } from "../projection/contract.ts";

export interface AppliedLimit {
  readonly charge: LimitCharge;
  /** Active override; `undefined` if the limit is charged as requested. */
  readonly override: OverrideRecord | undefined;
}

/** Returns the namespace limits with the active overrides applied, in order. Returns `unusable` if an override cannot be read now. */
export async function applyOverrides(
  projection: Pick<Projection, "findOverride">,
  charges: readonly LimitCharge[],
): Promise<{ readonly limits: readonly AppliedLimit[] } | { readonly unusable: string }> {
  const found = await Promise.all(
    charges.map(({ workspaceId, scope, identifier }) => projection.findOverride(workspaceId, scope.value, identifier)),
  );
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
