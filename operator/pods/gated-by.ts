import { createHash } from "node:crypto";

/**
 * Label of a pod with a gate. Its value is the policy for which the gate was injected. It is a label because NetworkPolicies select pods by
 * labels.
 */
export const GATED_BY_LABEL = "postern.dev/gated-by";

/**
 * Label of a pod with a gate. Its value is the policy's `spec.interception` at the time when the pod was created. NetworkPolicies select by
 * this label, because pods created before a change of that field need another NetworkPolicy than newer pods.
 */
export const INTERCEPTION_LABEL = "postern.dev/interception";

const LABEL_CHARS_MAX = 63;
const HASH_CHARS = 16;

/** Returns the label value for a policy: its name, or a prefix and a hash if the name is too long for a label. */
export const gatedBy = (policyName: string): string => cutName(policyName, LABEL_CHARS_MAX);

/** Returns the name, or a prefix and a hash if the name is longer than `charsMax`. The result for a DNS name is a DNS name. */
export function cutName(name: string, charsMax: number): string {
  if (name.length <= charsMax) return name;
  const hash = createHash("sha256").update(name).digest("hex").slice(0, HASH_CHARS);
  return `${name.slice(0, charsMax - HASH_CHARS - 1).replace(/[.-]+$/, "")}-${hash}`;
}
