import type { Admission } from "../http/in-flight.ts";
import type { ActivePolicy } from "../policy/active-policy.ts";
import { mayGoOn, type VerifyDeps } from "./verify.ts";

export interface StillValidDeps {
  readonly policy: () => ActivePolicy | undefined;
  readonly verifying: VerifyDeps;
}

/** Returns whether a request that was admitted earlier would still be admitted now. Called for open connections and streams. */
export async function isStillValid({ policy, verifying }: StillValidDeps, admission: Admission): Promise<boolean> {
  const active = policy();
  if (active === undefined || active.policy.mode === "Audit") return true;
  const matched = active.rules.match(admission.method, admission.path);
  if ("refused" in matched) return false;
  const { rule } = matched;
  if (rule.access === "Anonymous") return true;
  const { hash, clientIp } = admission;
  if (hash === undefined) return false;
  return mayGoOn(verifying, { active, rule, hash, clientIp });
}
