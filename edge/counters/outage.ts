import type { LimitCharge } from "../../core/charges.ts";
import { counterName } from "./memory.ts";
import { OverAdmission } from "./over-admission.ts";
import type { Synced, SyncItem } from "./sync.ts";

/*
 * Units that a process admitted by its own counts while the shared counters were unreachable. Once the counters respond again, the units
 * are added to them. Running windows then include the units, and the totals show by how much limits were exceeded.
 *
 * An amount that was sent is never sent again: if its reply is lost, it counts as delivered, and the over-admission that it caused is not
 * measured.
 */

/**
 * Maximum number of counters. Callers choose the identifiers, so the number must be bounded. Units charged to any further counter are not
 * recorded, so they are never added to the store.
 */
const COUNTERS_MAX = 50_000;
const COUNTERS_PER_ROUND = 1_000;
const TRY_EVERY_MS = 500;

interface Admitted {
  readonly charge: LimitCharge;
  /** Amounts by window. Windows before the previous one no longer count. */
  readonly amounts: Map<number, number>;
}

export interface OutageOptions {
  /** Returns the store's key of a charge's counter. */
  readonly keyOf: (charge: LimitCharge) => string;
  /**
   * Adds the amounts to the store's counters and returns the totals. Returns `undefined` if the store was not reached and no amount was
   * sent.
   */
  readonly sync: (items: readonly SyncItem[]) => Promise<Synced | undefined>;
  readonly everyMs?: number;
}

export class OutageCounts {
  readonly overAdmission = new OverAdmission();
  readonly #options: OutageOptions;
  readonly #admitted = new Map<string, Admitted>();
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: OutageOptions) {
    this.#options = options;
  }

  /** Records charges that this process admitted at `nowMs`. */
  add(charges: readonly LimitCharge[], nowMs: number): void {
    for (const charge of charges) {
      if (charge.cost === 0) continue;
      const name = counterName(charge);
      const known = this.#admitted.get(name);
      if (known === undefined && this.#admitted.size >= COUNTERS_MAX) continue;
      const amounts = known?.amounts ?? new Map<number, number>();
      addTo(amounts, Math.floor(nowMs / charge.durationMs), charge.cost);
      this.#admitted.set(name, { charge, amounts });
    }
    this.#schedule();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#isClosed || this.#admitted.size === 0) return;
    this.#timer = setTimeout(() => {
      void this.#settle().finally(() => {
        this.#timer = undefined;
        this.#schedule();
      });
    }, this.#options.everyMs ?? TRY_EVERY_MS);
    this.#timer.unref();
  }

  async #settle(): Promise<void> {
    const round = [...this.#admitted].slice(0, COUNTERS_PER_ROUND);
    for (const [name] of round) this.#admitted.delete(name);
    const items: SyncItem[] = [];
    const ends = round.map(([, { charge, amounts }]) => {
      const { durationMs } = charge;
      const key = this.#options.keyOf(charge);
      for (const [window, amount] of amounts) items.push({ key, durationMs, window, amount });
      return items.length;
    });
    const synced = await this.#options.sync(items).catch(() => "unknown" as const);
    if (synced === "unknown") return;
    if (synced === undefined) return this.#putBack(round);
    for (const [at, [, { charge, amounts }]] of round.entries()) {
      // Uses the totals returned for each counter's last amount, because they include the counter's earlier amounts too.
      const counts = synced.counts[(ends[at] ?? 0) - 1];
      const own = [...amounts.values()].reduce((sum, amount) => sum + amount, 0);
      const { limit, durationMs } = charge;
      if (counts !== undefined) this.overAdmission.note(counts, { limit, durationMs, nowMs: synced.nowMs, own });
    }
  }

  /** Puts amounts back after a failed sync, and adds them to those admitted in the meantime. */
  #putBack(round: readonly (readonly [string, Admitted])[]): void {
    for (const [name, { charge, amounts }] of round) {
      const since = this.#admitted.get(name)?.amounts ?? new Map<number, number>();
      for (const [window, amount] of amounts) addTo(since, window, amount);
      this.#admitted.set(name, { charge, amounts: since });
    }
  }
}

/** Adds an amount and drops windows before the previous one, which no longer count. */
function addTo(amounts: Map<number, number>, window: number, amount: number): void {
  amounts.set(window, (amounts.get(window) ?? 0) + amount);
  if (amounts.size === 1) return;
  const last = Math.max(...amounts.keys());
  for (const known of amounts.keys()) if (known < last - 1) amounts.delete(known);
}
