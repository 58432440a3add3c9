import type { LimitOutcome } from "../charges.ts";
import { admitsAt, decideLimit, rollCounts, usedAt, type WindowCounts } from "./window.ts";

export interface CounterCharge {
  /**
   * Key of the counter. Charges with the same key share a counter, and must have the same duration, because the duration is part of the
   * counter's identity.
   */
  readonly counterKey: string;
  readonly limit: number;
  readonly durationMs: number;
  readonly cost: number;
}

/**
 * Decides several charges, all or nothing (api-v2.md section 9.2). Charges on one counter are decided in order, and each includes the cost
 * of the earlier ones that passed. If one charge is rejected, no units are consumed, and the charges that pass report the remaining units
 * without the cost of any charge of this call. `updates` contains the counts to store; it is empty if no units are consumed.
 *
 * `retryAtMs` is computed from the stored counts, without the cost of the call's other charges: a cache that stores it per counter and cost
 * must not reject a single charge that would pass.
 */
export function decideLimits(
  charges: readonly CounterCharge[],
  read: (counterKey: string) => WindowCounts | undefined,
  nowMs: number,
): { passed: boolean; outcomes: LimitOutcome[]; updates: Map<string, WindowCounts> } {
  const updates = new Map<string, WindowCounts>();
  const outcomes: LimitOutcome[] = [];
  let passed = true;
  for (const charge of charges) {
    const { counterKey, limit, durationMs, cost } = charge;
    const counts = updates.get(counterKey) ?? read(counterKey);
    const decision = decideLimit({ limit, durationMs, counts, cost, nowMs });
    const { remaining, resetMs } = decision;
    if (decision.passed) {
      if (cost > 0) updates.set(counterKey, decision.counts);
      outcomes.push({ passed: true, remaining, resetMs });
    } else {
      passed = false;
      const retryAtMs = admitsAt({ limit, durationMs, counts: read(counterKey), cost, nowMs });
      outcomes.push({ passed: false, remaining, resetMs, retryAtMs });
    }
  }
  if (passed) return { passed, outcomes, updates };
  const asRead = outcomes.map((outcome, i) => {
    const charge = charges[i];
    if (!outcome.passed || charge === undefined) return outcome;
    const { counterKey, limit, durationMs } = charge;
    const stored = rollCounts(read(counterKey), { durationMs, nowMs });
    return { ...outcome, remaining: Math.max(0, limit - usedAt(stored, { durationMs, nowMs })) };
  });
  return { passed, outcomes: asRead, updates: new Map() };
}

/**
 * Returns the share of a limit that one of several pods may admit while the pods cannot use shared counters: the limit divided by the
 * number of pods, rounded down, but at least 1, so that every key can be used. All pods together admit at most the limit or, if there are
 * more pods than units, one unit per pod.
 */
export function shareOfLimit(limit: number, pods: number): number {
  return limit === 0 ? 0 : Math.max(1, Math.floor(limit / Math.max(1, pods)));
}
