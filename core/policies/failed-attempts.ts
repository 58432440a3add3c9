import type { LimitCharge, LimitOutcome } from "../charges.ts";
import type { CompiledPolicy } from "./policy.ts";

/*
 * Counters of `failedAttempts`: one counts the failures of a client address, and one for each key that succeeded from the address marks the
 * key as spared for an hour.
 */

export interface AttemptCounters {
  /** The charge of one failure. */
  readonly failure: LimitCharge;
  /** The charge of one success of the key. */
  readonly success: LimitCharge;
}

/** Duration for which a key is spared after it succeeded from an address. */
export const SPARED_MS = 3_600_000;
/** Units of a success: enough for a rest to remain until the hour ends, because counts of the previous window decrease with time. */
const SUCCESS_COST = 3_600;
const SUCCESS_LIMIT = 1_000_000_000;

/** Returns the charges of an attempt; `address` is the address that counts as one client, and `hash` the hash of the key. */
export function attemptCounters(of: {
  readonly workspaceId: string;
  readonly policyId: string;
  readonly limit: NonNullable<CompiledPolicy["failedAttempts"]>;
  readonly address: string;
  readonly hash: string;
}): AttemptCounters {
  const { workspaceId, policyId: value, limit, address, hash } = of;
  const accuracy = "local" as const;
  return {
    failure: { workspaceId, scope: { kind: "attempts", value }, identifier: address, ...limit, cost: 1, accuracy },
    success: {
      workspaceId,
      scope: { kind: "spared", value },
      identifier: `${address} ${hash}`,
      limit: SUCCESS_LIMIT,
      durationMs: SPARED_MS,
      cost: SUCCESS_COST,
      accuracy,
    },
  };
}

/** Returns whether the key succeeded from the address within the last hour, by a check of its success counter. */
export const hasSucceeded = (success: LimitOutcome | undefined): boolean =>
  success !== undefined && success.remaining < SUCCESS_LIMIT;
