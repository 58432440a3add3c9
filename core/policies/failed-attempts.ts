import type { LimitCharge, LimitOutcome } from "../charges.ts";
import type { CompiledPolicy } from "./policy.ts";

/*
 * Counters of `failedAttempts`. One counter per client address counts failures. Another counter per address and key records that the key
 * succeeded from the address, so the key stays allowed for an hour.
 */

export interface AttemptCounters {
  /** Charge for one failed attempt. */
  readonly failure: LimitCharge;
  /** Charge for one successful attempt with the key. */
  readonly success: LimitCharge;
}

/** Time for which a key stays allowed after it succeeded from an address, even if the address fails too often. */
export const SPARED_MS = 3_600_000;
/**
 * Units of one success: one per second of the hour. Within the hour, the sliding window counts a shrinking share of these units, which
 * falls below one only in the last second.
 */
const SUCCESS_COST = 3_600;
const SUCCESS_LIMIT = 1_000_000_000;

/**
 * Returns the charges of an attempt; `address` is the address, or the IPv6 network, that counts as one client, and `hash` the hash of the
 * key.
 */
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

/** Returns whether the key succeeded from the address within the last hour, given the outcome of its success counter. */
export const hasSucceeded = (success: LimitOutcome | undefined): boolean =>
  success !== undefined && success.remaining < SUCCESS_LIMIT;
