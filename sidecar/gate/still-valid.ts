import type { Admission } from "../http/ongoing.ts";
import type { PolicyInForce } from "../policy/in-force.ts";
import { mayGoOn, type VerifyParts } from "./verify.ts";

export interface StillValidParts {
  readonly policy: () => PolicyInForce | undefined;
  readonly verifying: VerifyParts;
}

/** Whether the request would still be admitted: checked for open connections and streams. */
export async function isStillValid({ policy, verifying }: StillValidParts, admission: Admission): Promise<boolean> {
  const inForce = policy();
  if (inForce === undefined || inForce.policy.mode === "Audit") return true;
  const matched = inForce.rules.match(admission.method, admission.path);
  if ("refused" in matched) return false;
  const { rule } = matched;
  if (rule.access === "Anonymous") return true;
  const { hash, clientIp } = admission;
  if (hash === undefined) return false;
  return mayGoOn(verifying, { inForce, rule, hash, clientIp });
}
