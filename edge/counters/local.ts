import type { Consumed, LimitCharge, LimitOutcome } from "../../core/charges.ts";
import { decideLimits } from "../../core/ratelimits/decide-limits.ts";
import { decideLimit, rollCounts, type WindowCounts } from "../../core/ratelimits/window.ts";
import type { ConsumeRequest, Counters } from "./contract.ts";
import { counterName } from "./memory.ts";
import { OverAdmission } from "./over-admission.ts";
import type { StrictCounters } from "./strict.ts";
import { type Amount, type Synced, type SyncItem, withAmounts } from "./sync.ts";

/*
 * Limits with `accuracy: "local"` are decided in this process, from the store's last totals and the units that this process has admitted
 * since then. Both are synced every 100 ms. Therefore all processes together can exceed the limit by the units that they admit between two
 * successful syncs. Each process measures its own part of that excess.
 *
 * An amount that was sent is never sent again: if the reply is lost, the amount counts here as if it had arrived.
 */

const SYNC_EVERY_MS = 100;
const SWEEP_EVERY_MS = 10_000;
/** Maximum number of counters. Beyond it, the oldest counter is evicted together with the totals of other processes. */
const COUNTERS_MAX = 100_000;

interface LocalCounter {
  /** Name of the counter in this process. */
  readonly name: string;
  /** Key of the counter in the store. */
  readonly key: string;
  readonly durationMs: number;
  /** Totals of all processes at the last sync. */
  shared: WindowCounts | undefined;
  /**
   * Units admitted in this process since the last sync: one amount for each window. An amount is negative if units were given back because
   * another limit denied the request.
   */
  pending: Amount[];
  /** Amounts in flight. This process adds them to the totals until a reply contains totals that include them. */
  underWay: readonly Amount[];
  /** Limit of the last request, against which over-admission is measured. */
  limit: number;
}

export interface LocalOptions {
  /** Returns the store's key of a charge's counter. */
  readonly keyOf: (charge: LimitCharge) => string;
  /**
   * Adds the amounts to the store's counters and returns the totals. Returns `undefined` if the store was not reached and no amount was
   * sent.
   */
  readonly sync: (items: readonly SyncItem[]) => Promise<Synced | undefined>;
  readonly everyMs?: number;
}

export class LocalCounters implements Counters {
  readonly #strict: StrictCounters;
  readonly #options: LocalOptions;
  readonly #counters = new Map<string, LocalCounter>();
  readonly #touched = new Set<LocalCounter>();
  #timer: NodeJS.Timeout | undefined;
  #syncing: Promise<void> = Promise.resolve();
  /** Store clock − monotonic clock. Until the first sync, this host's clock is used instead. */
  #offsetMs = Date.now() - performance.now();
  readonly overAdmission = new OverAdmission();
  #sweptAtMs = 0;
  #isClosed = false;

  constructor(strict: StrictCounters, options: LocalOptions) {
    this.#strict = strict;
    this.#options = options;
  }

  consume(request: ConsumeRequest): Promise<Consumed> {
    for (const charge of request.limits) if (charge.accuracy === "local") return this.#consumeMixed(request);
    return this.#strict.consume(request);
  }

  /** Decides a charge without consuming units, and requests the totals of other processes. */
  check(charge: LimitCharge): LimitOutcome {
    const { limit, durationMs, cost } = charge;
    const counter = this.#counter(charge);
    this.#touched.add(counter);
    this.#schedule();
    const nowMs = Math.floor(this.#offsetMs + performance.now());
    const read = () => viewOf(counter, nowMs);
    const [outcome] = decideLimits([{ counterKey: counter.key, limit, durationMs, cost }], read, nowMs).outcomes;
    if (outcome === undefined) throw new Error("each charge has an outcome");
    return outcome;
  }

  /** Syncs one last time, so that other processes get the remaining amounts. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#syncing;
    await this.#sync();
    await this.#strict.close();
  }

  async #consumeMixed({ limits, credits }: ConsumeRequest): Promise<Consumed> {
    const local = limits.filter((charge) => charge.accuracy === "local");
    const strict = limits.filter((charge) => charge.accuracy !== "local");
    const nowMs = Math.floor(this.#offsetMs + performance.now());
    const decided = this.#decide(local, nowMs);
    if (strict.length === 0 && credits === undefined) {
      return { nowMs, limits: decided.outcomes, passed: decided.passed };
    }
    if (!decided.passed) {
      // The dry run consumes no units; its result is only shown.
      const asked = await this.#strict.consume({ limits: strict }, { dryRun: true });
      const outcomes = inOrder(limits, decided.outcomes, asked.limits);
      const base = { nowMs: asked.nowMs, limits: outcomes, passed: false };
      return credits === undefined ? base : { ...base, credits: { status: "unreached", remaining: undefined } };
    }
    let consumed: Consumed;
    try {
      consumed = await this.#strict.consume({ limits: strict, credits });
    } catch (error) {
      this.#takeBack(local, nowMs);
      throw error;
    }
    if (consumed.passed) return { ...consumed, limits: inOrder(limits, decided.outcomes, consumed.limits) };
    this.#takeBack(local, nowMs);
    return { ...consumed, limits: inOrder(limits, this.#asRead(local, nowMs), consumed.limits) };
  }

  /** Decides and admits in one synchronous step, so that two concurrent requests cannot both consume the last unit. */
  #decide(charges: readonly LimitCharge[], nowMs: number) {
    const asked = charges.map((charge) => {
      const { limit, durationMs, cost } = charge;
      const counter = this.#counter(charge);
      counter.limit = limit;
      this.#touched.add(counter);
      return { counterKey: counter.key, limit, durationMs, cost, counter };
    });
    const views = new Map(asked.map(({ counterKey, counter }) => [counterKey, viewOf(counter, nowMs)]));
    const decided = decideLimits(asked, (key) => views.get(key), nowMs);
    if (decided.passed) {
      for (const { counter, cost } of asked) addPending(counter, nowMs, cost);
    }
    this.#schedule();
    return decided;
  }

  #takeBack(charges: readonly LimitCharge[], nowMs: number): void {
    for (const charge of charges) addPending(this.#counter(charge), nowMs, -charge.cost);
  }

  #asRead(charges: readonly LimitCharge[], nowMs: number): LimitOutcome[] {
    return charges.map((charge) => {
      const { limit, durationMs } = charge;
      const counts = viewOf(this.#counter(charge), nowMs);
      const { remaining, resetMs } = decideLimit({ limit, durationMs, counts, cost: 0, nowMs });
      return { passed: true, remaining, resetMs };
    });
  }

  #counter(charge: LimitCharge): LocalCounter {
    const name = counterName(charge);
    let counter = this.#counters.get(name);
    if (counter === undefined) {
      const { durationMs, limit } = charge;
      const key = this.#options.keyOf(charge);
      counter = { name, key, durationMs, shared: undefined, pending: [], underWay: [], limit };
      const [oldest] = this.#counters.size < COUNTERS_MAX ? [] : this.#counters.keys();
      if (oldest !== undefined) this.#counters.delete(oldest);
      this.#counters.set(name, counter);
    }
    return counter;
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#isClosed) return;
    this.#timer = setTimeout(() => {
      this.#syncing = this.#sync().finally(() => {
        this.#timer = undefined;
        if (this.#touched.size > 0) this.#schedule();
      });
    }, this.#options.everyMs ?? SYNC_EVERY_MS);
    this.#timer.unref();
  }

  async #sync(): Promise<void> {
    const counters = [...this.#touched];
    if (counters.length === 0) return;
    this.#touched.clear();
    const items: SyncItem[] = [];
    const owners: LocalCounter[] = [];
    for (const counter of counters) {
      const amounts = counter.pending.length > 0 ? counter.pending : [{ window: 0, amount: 0 }];
      for (const amount of amounts) {
        items.push({ key: counter.key, durationMs: counter.durationMs, ...amount });
        owners.push(counter);
      }
    }
    for (const counter of counters) {
      counter.underWay = counter.pending;
      counter.pending = [];
    }
    const sentAtMs = performance.now();
    const synced = await this.#options.sync(items).catch(() => "unknown" as const);
    if (synced === undefined) {
      // The amounts were not sent, so they become pending again and are added to the units admitted in the meantime.
      for (const counter of counters) {
        for (const { window, amount } of counter.underWay) addTo(counter.pending, window, amount);
        // Amounts of evicted counters are not sent again, because a long outage would otherwise keep every identifier in memory.
        const isKept = this.#counters.get(counter.name) === counter;
        if (counter.underWay.length > 0 && isKept) this.#touched.add(counter);
        else if (!isKept) this.#touched.delete(counter);
      }
    } else if (synced === "unknown") {
      for (const counter of counters) counter.shared = withAmounts(counter.shared, counter.underWay);
    } else {
      this.#offsetMs = synced.nowMs - sentAtMs;
      for (const [i, counter] of owners.entries()) counter.shared = synced.counts[i];
      for (const counter of counters) this.#measure(counter, counter.underWay, synced.nowMs);
    }
    for (const counter of counters) counter.underWay = [];
    this.#sweep();
  }

  #measure(counter: LocalCounter, sent: readonly Amount[], nowMs: number): void {
    const { shared, durationMs, limit } = counter;
    const own = sent.reduce((sum, { amount }) => sum + amount, 0);
    if (shared !== undefined) this.overAdmission.note(shared, { limit, durationMs, nowMs, own });
  }

  #sweep(): void {
    const monotonicMs = performance.now();
    if (monotonicMs - this.#sweptAtMs < SWEEP_EVERY_MS) return;
    this.#sweptAtMs = monotonicMs;
    const nowMs = this.#offsetMs + monotonicMs;
    for (const [name, counter] of this.#counters) {
      const latest = cachedCounts(counter)?.window ?? 0;
      if (Math.floor(nowMs / counter.durationMs) > latest + 1) this.#counters.delete(name);
    }
  }
}

/** Returns the last totals, plus those amounts of this process that they do not include. */
function cachedCounts({ shared, underWay, pending }: LocalCounter): WindowCounts | undefined {
  return withAmounts(withAmounts(shared, underWay), pending);
}

function viewOf(counter: LocalCounter, nowMs: number): WindowCounts {
  return rollCounts(cachedCounts(counter), { durationMs: counter.durationMs, nowMs });
}

function addPending(counter: LocalCounter, nowMs: number, amount: number): void {
  if (amount === 0) return;
  addTo(counter.pending, viewOf(counter, nowMs).window, amount);
  // Drops windows before the previous one, which no longer count.
  if (counter.pending.length > 2) counter.pending = counter.pending.slice(-2);
}

function addTo(pending: Amount[], window: number, amount: number): void {
  const at = pending.findIndex((entry) => entry.window === window);
  const known = pending[at];
  if (known !== undefined) pending[at] = { window, amount: known.amount + amount };
  else pending.push({ window, amount });
  pending.sort((a, b) => a.window - b.window);
}

function inOrder(
  charges: readonly LimitCharge[],
  local: readonly LimitOutcome[],
  strict: readonly LimitOutcome[],
): LimitOutcome[] {
  const rest = { local: [...local], strict: [...strict] };
  return charges.map(({ accuracy }) => {
    const outcome = rest[accuracy].shift();
    if (outcome === undefined) throw new Error("each charge has an outcome");
    return outcome;
  });
}
