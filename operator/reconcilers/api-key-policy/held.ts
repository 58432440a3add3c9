import type { FurtherCondition, Verdict } from "../plan.ts";
import { bypassable } from "./bypassable.ts";
import { enforced } from "./enforced.ts";
import type { ObservedPolicy } from "./observed.ts";
import { ofSidecars } from "./sidecars.ts";

/*
 * Conditions of a policy whose manifest cannot be applied. The previously applied policy stays active. But the conditions have the
 * generation of the new manifest as `observedGeneration`, so they must claim only what the operator has verified for this generation. Pure.
 */

/** Returns the conditions. `observed` is `undefined` if the database was not read. */
export function heldConditions(verdict: Verdict, observed?: ObservedPolicy): readonly FurtherCondition[] {
  const { reason, message } = verdict;
  // If the API is unavailable, the operator cannot determine whether the spec is valid.
  const status = reason === "ApiUnavailable" ? "Unknown" : "False";
  const accepted: FurtherCondition = { type: "Accepted", status, reason, message };
  if (observed === undefined) return [accepted, { type: "Enforced", status, reason, message: UNSEEN }];
  return [accepted, former(verdict, observed), bypassable(observed), ...ofSidecars(observed)];
}

const UNSEEN =
  "This generation is not active. A previous generation, if there is one, remains active: status.policyVersion is its version.";

function former({ reason }: Verdict, observed: ObservedPolicy): FurtherCondition {
  const { object, selected } = observed;
  const own = observed.stored;
  const is = (message: string): FurtherCondition => ({ type: "Enforced", status: "False", reason, message });
  if (own === undefined) return is("No generation of this policy has been active yet.");
  const { uid, generation, version, dataPlane } = own;
  const isSameObject = uid === object.metadata.uid;
  const isContested = typeof selected === "object" && selected.contested > 0;
  const atPods = enforced(dataPlane, observed);
  if (isSameObject && generation === object.metadata.generation && !isContested) {
    return { ...atPods, message: `${atPods.message} The policy stays active as it was stored (version ${version}).` };
  }
  const which = isSameObject ? `Generation ${generation}` : "The policy of a previous object with this name";
  const where = atPods.status === "True" ? "" : `, though not at all pods (${atPods.reason})`;
  return is(`${which} (version ${version}) remains active until this generation is accepted${where}.`);
}
