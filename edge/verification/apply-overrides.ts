import type { LimitCharge } from "../../core/charges.ts";
import { applyOverride } from "../../core/ratelimits/overrides.ts";
import type { OverrideRecord } from "../../core/records.ts";
import type { SharedLimit } from "../../core/verification/plan-charges.ts";
import type { Projection } from "../projection/contract.ts";

export interface AppliedLimit {
  readonly charge: LimitCharge;
  /** undefined: the limit is charged as requested. */
  readonly override: OverrideRecord | undefined;
}

/** Returns the limits of namespaces with the overrides in force, in order; `unusable` when one of these cannot be read now. */
export async function applyOverrides(
  projection: Pick<Projection, "findOverride">,
  workspaceId: string,
  shared: readonly SharedLimit[],
): Promise<{ readonly limits: readonly AppliedLimit[] } | { readonly unusable: string }> {
  const found = await Promise.all(
    shared.map(({ namespaceId, charge }) => projection.findOverride(workspaceId, namespaceId, charge.identifier)),
  );
  const limits: AppliedLimit[] = [];
  for (const [at, { charge }] of shared.entries()) {
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
