import { PublicError } from "../../../core/errors.ts";
import type { Lookup } from "../../../edge/projection/contract.ts";

/**
 * Returns the value of a lookup; undefined when it is known to be absent.
 * @throws PublicError 500 `service_unavailable` when it is unknown, because the database is unreachable and nothing is cached.
 */
export function knownValue<T>(lookup: Lookup<T>): T | undefined {
  if (lookup.status === "unusable") throw notKnown();
  return lookup.status === "found" ? lookup.value : undefined;
}

/** The error for a request that refers to an object which cannot be looked up now. */
export const notKnown = (): PublicError =>
  new PublicError("service_unavailable", "What the request refers to cannot be looked up at the moment.");
