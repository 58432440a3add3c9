import { createHash } from "node:crypto";

/** On a pod with a gate: the policy that it was injected for. A label, because a NetworkPolicy selects pods by labels alone. */
export const GATED_BY_LABEL = "postern.dev/gated-by";

/**
 * On a pod with a gate: how requests to the app's port are led to it, as `spec.interception` said when the pod was made. A NetworkPolicy
 * selects by it, because pods that were made before a change of the policy need another one than those that were made after it.
 */
export const INTERCEPTION_LABEL = "postern.dev/interception";

const LABEL_CHARS_MAX = 63;
const HASH_CHARS = 16;

/** The label's value for a policy: its name, or the beginning of a name that is too long for a label, with a hash of the whole. */
export const gatedBy = (policyName: string): string => cutName(policyName, LABEL_CHARS_MAX);

/** A name of at most so many characters: itself, or its beginning with a hash of the whole. Still a DNS name when it was one. */
export function cutName(name: string, charsMax: number): string {
  if (name.length <= charsMax) return name;
  const hash = createHash("sha256").update(name).digest("hex").slice(0, HASH_CHARS);
  return `${name.slice(0, charsMax - HASH_CHARS - 1).replace(/[.-]+$/, "")}-${hash}`;
}
