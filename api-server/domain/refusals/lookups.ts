import { PublicError } from "../../../core/errors.ts";
import type { Lookup } from "../../../edge/projection/contract.ts";

/**
 * Returns the value of a lookup; `undefined` if it is known to be absent.
 * @throws PublicError 500 `service_unavailable` if it is unknown, because the database is unreachable and the value is not cached.
 */
export function knownValue<T>(lookup: Lookup<T>): T | undefined {
  if (lookup.status === "unusable") throw notKnown();
  return lookup.status === "found" ? lookup.value : undefined;
}

/** Returns the error for a request that refers to an object which cannot be looked up now. */
export const notKnown = (): PublicError =>
  new PublicError("service_unavailable", "What the request refers to cannot be looked up at the moment.");
