import { PublicError } from "../../../core/errors.ts";
import type { Lookup } from "../../../edge/projection/contract.ts";

/**
 * The value of a lookup, undefined when it is known that there is none.
 * @throws PublicError 500 `service_unavailable` when nothing is known: the database is away, and so is a cached answer.
 */
export function knownValue<T>(lookup: Lookup<T>): T | undefined {
  if (lookup.status === "unusable") throw notKnown();
  return lookup.status === "found" ? lookup.value : undefined;
}

/** The error for a request that refers to what cannot be looked up now. */
export const notKnown = (): PublicError =>
  new PublicError("service_unavailable", "What the request refers to cannot be looked up at the moment.");
