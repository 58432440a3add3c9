import { headersNamed } from "../../core/policies/rule-headers.ts";
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
  const { method, path: target, head, hash, clientIp } = admission;
  const { host, forwarded } = head;
  const headers = headersNamed(active.rules.headerNames, forwarded);
  const matched = active.rules.match({ method, target, host, headers });
  if ("refused" in matched) return false;
  const { rule } = matched;
  if (rule.access === "Anonymous") return true;
  if (rule.access === "Deny" || hash === undefined) return false;
  const values = { method, path: matched.path, address: clientIp ?? "", head: { host, ruleHeaders: headers } };
  return mayGoOn(verifying, { active, rule, hash, clientIp, ...values });
}
