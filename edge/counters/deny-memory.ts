import type { Consumed, LimitCharge, LimitOutcome } from "../../core/charges.ts";
import { CLOCK_BEHIND_MS_MAX, windowAt } from "../../core/ratelimits/window.ts";
import { BoundedCache } from "../bounded-cache.ts";
import type { ConsumeRequest } from "./contract.ts";
import { counterName } from "./memory.ts";
import type { ConsumeOptions, StrictCounters } from "./strict.ts";

/*
 * Caches denials. A denial stays correct until the time at which the charge could pass if no other caller consumed any units; other callers
 * only move that time later. So a caller over its limit causes no round trip. Denials are not cached on a cluster, where amounts are given
 * back and counts can go down.
 *
 * The outcome is cached for each limit of a request. A denial is cached until that time. A limit that would have passed is cached until its
 * window ends, and is used only in responses that also contain a denial.
 */

interface Remembered {
  readonly outcome: LimitOutcome;
  /** Time at which the cached outcome expires: store time, Unix ms. */
  readonly untilMs: number;
  /** Credits as reported with the outcome. */
  readonly credits: { readonly keyId: string; readonly remaining: number | undefined } | undefined;
}

const REMEMBERED_MAX = 10_000;

export class DenialCache implements StrictCounters {
  readonly #inner: StrictCounters;
  readonly #remembered: BoundedCache<string, Remembered>;
  /**
   * Store clock − monotonic clock. It is measured from the time at which a request was sent, so that the estimate is never behind the
   * store.
   */
  #offsetMs = 0;

  readonly #monotonicMs: () => number;

  constructor(inner: StrictCounters, options: { max?: number; monotonicMs?: () => number } = {}) {
    const { max = REMEMBERED_MAX, monotonicMs = () => performance.now() } = options;
    this.#inner = inner;
    this.#remembered = new BoundedCache(max);
    this.#monotonicMs = monotonicMs;
  }

  consume(request: ConsumeRequest, options?: ConsumeOptions): Promise<Consumed> {
    if (options?.dryRun === true) return this.#inner.consume(request, options);
    if (this.#remembered.size > 0) {
      const recalled = this.#recall(request);
      if (recalled !== undefined) return Promise.resolve(recalled);
    }
    const sentAtMs = this.#monotonicMs();
    return this.#inner.consume(request).then((consumed) => {
      const offsetMs = consumed.nowMs - sentAtMs;
      // The store clock was set back, so the cached outcomes would expire too late.
      if (offsetMs < this.#offsetMs - CLOCK_BEHIND_MS_MAX) this.#remembered.clear();
      this.#offsetMs = offsetMs;
      if (!consumed.passed) this.#remember(request, consumed);
      return consumed;
    });
  }

  /** Drops all entries. Called when a new projection begins, because the store may have rolled back the counters. */
  forget(): void {
    this.#remembered.clear();
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  #recall({ limits, credits }: ConsumeRequest): Consumed | undefined {
    const nowMs = Math.floor(this.#offsetMs + this.#monotonicMs());
    const outcomes: LimitOutcome[] = [];
    let passed = true;
    let remaining: number | undefined;
    let knowsCredits = credits === undefined;
    for (const charge of limits) {
      const remembered = this.#remembered.get(nameOf(charge));
      if (remembered === undefined || remembered.untilMs <= nowMs) return undefined;
      const { outcome } = remembered;
      if (!outcome.passed) passed = false;
      if (credits !== undefined && remembered.credits?.keyId === credits.keyId) {
        knowsCredits = true;
        remaining = remembered.credits.remaining;
      }
      const resetMs = Math.max(outcome.resetMs, windowAt(nowMs, charge.durationMs).resetMs);
      outcomes.push({ ...outcome, resetMs });
    }
    if (passed || !knowsCredits) return undefined;
    const base = { nowMs, limits: outcomes, passed };
    return credits === undefined ? base : { ...base, credits: { status: "unreached", remaining } };
  }

  #remember({ limits, credits }: ConsumeRequest, consumed: Consumed): void {
    const { nowMs, credits: spent } = consumed;
    const remaining = spent?.status === "unreached" ? spent.remaining : undefined;
    for (const [i, charge] of limits.entries()) {
      const outcome = consumed.limits[i];
      if (outcome === undefined) continue;
      const untilMs = outcome.passed ? outcome.resetMs : (outcome.retryAtMs ?? 0);
      if (untilMs <= nowMs) continue;
      this.#remembered.set(nameOf(charge), {
        outcome,
        untilMs,
        credits: credits === undefined ? undefined : { keyId: credits.keyId, remaining },
      });
    }
  }
}

/** Name of a cached outcome. It includes the limit's value, so that a cached outcome is not used after the limit has changed. */
const nameOf = (charge: LimitCharge): string => `${charge.limit}:${charge.cost}:${counterName(charge)}`;
