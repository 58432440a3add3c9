import type { Consumed, CreditCharge, CreditOutcome, LimitCharge } from "../../core/charges.ts";
import { decideLimits } from "../../core/ratelimits/decide-limits.ts";
import type { WindowCounts } from "../../core/ratelimits/window.ts";
import { creditsKey, type MemoryCreditCounters, type MemoryCredits, mark } from "../credits/memory-counters.ts";
import type { ConsumeRequest } from "./contract.ts";
import { type ConsumeOptions, reportRefused, type StrictCounters } from "./strict.ts";

interface KeptCounts extends WindowCounts {
  /** Time from which the counts can be dropped, Unix ms: the end of the window after the counted one. */
  readonly expiresMs: number;
}

/** Maximum number of counters. Callers choose the identifiers, so the number is bounded: beyond it, the oldest counter is evicted. */
const COUNTERS_MAX = 500_000;

/** Number of counters that each call checks for expiry, so that no call has to check all of them. */
const SWEEP_PER_CALL = 2;

/** The counters of one process, shared by `MemoryCounters` and `MemoryCreditStore`. */
export class MemoryStore implements MemoryCreditCounters {
  readonly nowMs: () => number;
  readonly limits = new Map<string, KeptCounts>();
  readonly #limitsMax: number;
  readonly credits = new Map<string, MemoryCredits>();
  readonly dirty = new Map<string, Set<string>>();
  readonly toLoad = new Map<string, Set<string>>();
  #sweep: Iterator<[string, KeptCounts]> | undefined;

  constructor(nowMs: () => number = Date.now, limitsMax: number = COUNTERS_MAX) {
    this.nowMs = nowMs;
    this.#limitsMax = limitsMax;
  }

  setLimit(key: string, counts: WindowCounts, durationMs: number): void {
    if (this.limits.size >= this.#limitsMax && !this.limits.has(key)) {
      const [oldest] = this.limits.keys();
      if (oldest !== undefined) this.limits.delete(oldest);
    }
    this.limits.set(key, { ...counts, expiresMs: (counts.window + 2) * durationMs });
  }

  sweep(nowMs: number): void {
    for (let i = 0; i < SWEEP_PER_CALL; i++) {
      this.#sweep ??= this.limits.entries();
      const next = this.#sweep.next();
      if (next.done === true) {
        this.#sweep = undefined;
        return;
      }
      const [key, counts] = next.value;
      if (counts.expiresMs <= nowMs) this.limits.delete(key);
    }
  }
}

/** Returns the name of a charge's counter within this process. The length prefix keeps the names of different charges distinct. */
export function counterName({ workspaceId, scope, identifier, durationMs }: LimitCharge): string {
  return `${workspaceId}:${scope.kind}:${scope.value.length}:${scope.value}:${durationMs}:${identifier}`;
}

/** Counts in this process only: for `postern dev`, and for a pod's own decisions while Redis is unreachable. */
export class MemoryCounters implements StrictCounters {
  readonly #store: MemoryStore;

  constructor(store: MemoryStore = new MemoryStore()) {
    this.#store = store;
  }

  async consume(request: ConsumeRequest, options?: ConsumeOptions): Promise<Consumed> {
    return this.consumeNow(request, options);
  }

  /** Synchronous form of `consume`, because memory counters never wait. */
  consumeNow({ limits, credits }: ConsumeRequest, options?: ConsumeOptions): Consumed {
    const store = this.#store;
    const nowMs = store.nowMs();
    store.sweep(nowMs);
    const charges = limits.map((charge) => ({
      counterKey: counterName(charge),
      limit: charge.limit,
      durationMs: charge.durationMs,
      cost: charge.cost,
    }));
    const read = (counterKey: string) => store.limits.get(counterKey);
    const decided = decideLimits(charges, read, nowMs);
    const dryRun = options?.dryRun === true;
    if (!dryRun) {
      for (const { counterKey, durationMs } of charges) {
        const counts = decided.updates.get(counterKey);
        if (counts !== undefined) store.setLimit(counterKey, counts, durationMs);
      }
    }
    const outcomes = dryRun ? reportRefused(charges, decided.outcomes, { read, nowMs }) : decided.outcomes;
    const base = { nowMs, limits: outcomes, passed: decided.passed };
    if (credits === undefined || dryRun) return base;
    return { ...base, credits: this.#spend(credits, decided.passed) };
  }

  async close(): Promise<void> {}

  #spend({ workspaceId, keyId, cost }: CreditCharge, limitsPassed: boolean): CreditOutcome {
    const store = this.#store;
    const key = creditsKey(workspaceId, keyId);
    const counter = store.credits.get(key);
    const isOpen = counter?.open === true;
    const remaining = isOpen ? Math.max(0, counter.granted - counter.spent) : undefined;
    if (!limitsPassed) return { status: "unreached", remaining };
    if (!isOpen || remaining === undefined) {
      mark(store.toLoad, workspaceId, keyId);
      return { status: "unknown" };
    }
    if (counter.spent + cost > counter.granted) return { status: "refused", remaining };
    if (cost > 0) {
      store.credits.set(key, { ...counter, spent: counter.spent + cost });
      mark(store.dirty, workspaceId, keyId);
    }
    return { status: "spent", remaining: remaining - cost };
  }
}
