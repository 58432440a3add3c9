import type { Consumed, CreditCharge, CreditOutcome, LimitCharge } from "../../core/charges.ts";
import { explainKey, notFoundStep } from "../../core/explanation/explain-key.ts";
import type { ExplainedKey, SeenCounts, SeenUncounted, Source } from "../../core/explanation/shapes.ts";
import type { Query } from "../../core/permissions/query.ts";
import type { KeyRecord, OverrideRecord } from "../../core/records.ts";
import type { Code } from "../../core/verification/codes.ts";
import { retryAfterS } from "../../core/verification/conclude.ts";
import type { KeyView } from "../../core/verification/key-view.ts";
import { type ChargePlan, chargesAnything } from "../../core/verification/plan-charges.ts";
import { type ConsumeRequest, CountersUnavailable } from "../counters/contract.ts";
import { MemoryCounters, MemoryStore } from "../counters/memory.ts";
import type { Lookup, Projection } from "../projection/contract.ts";
import { count, type WithoutStore } from "./count.ts";
import { type Verification, type VerifyParts, verify } from "./verify.ts";

/*
 * A verification that is only explained. The code that decides is the same (verify.ts), unchanged: it is given a verification and parts that
 * stand before the real ones, pass on what they answer and remember it, and count nothing. So an explanation costs other
 * verifications nothing, and what it says was seen is what decided.
 */

export interface ExplainParts {
  /** Clock of the shared store, Unix ms. */
  readonly nowMs: () => number;
  readonly projection: Pick<Projection, "findOverride" | "findNamespace">;
  /** How old the records may be, ms; Infinity when that is not known. */
  readonly recordsAgeMs: () => number;
  /** Decides limits in the shared store and counts nothing. Rejects with `CountersUnavailable`. */
  readonly peekLimits: (limits: readonly LimitCharge[]) => Promise<Consumed>;
  /**
   * What is left of the credits of a key; undefined when it has no limit of them any more. Rejects with `CountersUnavailable` when the
   * shared store does not answer.
   */
  readonly readCredits: (charge: CreditCharge) => Promise<number | undefined>;
}

export interface Explained {
  /** `UNKNOWN`: it cannot be decided now. */
  readonly code: Code | "UNKNOWN";
  /** undefined for a key that is not found, or that the caller may not know of. */
  readonly view: KeyView | undefined;
  readonly explained: ExplainedKey;
  /** Whole seconds until a refused request may pass. */
  readonly retryAfterS: number | undefined;
  /** The moment that was decided for, Unix ms. */
  readonly nowMs: number;
}

export interface ExplainOptions {
  /** The policy whose rule asks; undefined for a call of the API. */
  readonly policy?: Omit<Source, "kind"> | undefined;
  /** What is said of a key that is not found; `hidden` is one that the caller of the verification may not know of. */
  readonly sayNotFound?: (hidden: KeyRecord | undefined) => string;
}

/**
 * Explains what `verify` would decide now: counts, spends and records nothing, and asks for nothing to be loaded. Throws and rejects with the
 * errors of `verification`, and with our own faults.
 */
export async function explain(
  parts: ExplainParts,
  verification: Verification,
  { policy, sayNotFound = () => "There is no such key." }: ExplainOptions = {},
): Promise<Explained> {
  const dry = new DryParts(parts);
  const watched = new WatchedVerification(verification);
  const verdict = await verify(dry, watched);
  const nowMs = dry.nowMs();
  const code = verdict.kind === "decided" ? verdict.code : "UNKNOWN";
  const recordsAgeMs = ageOf(parts);
  const { view } = watched;
  if (view === undefined) {
    const isUnknown = verdict.kind === "unknown";
    const detail = isUnknown ? `It cannot be looked up now: ${verdict.reason}` : sayNotFound(watched.hidden);
    const explained = { ...NOTHING, steps: [notFoundStep(detail, recordsAgeMs, isUnknown)] };
    return { code, view, explained, retryAfterS: undefined, nowMs };
  }

  // What comes after the step that decided is told too, and cannot fail the explanation any more.
  const query = orReason(() => watched.readQuery());
  const plan = watched.planned ?? orReason(() => watched.plan(view));
  const withoutStore = typeof plan === "string" ? undefined : verification.withoutStore(plan);
  if (typeof plan !== "string" && withoutStore !== undefined && !dry.hasAsked && chargesAnything(plan)) {
    await count(dry, { plan, withoutStore });
  }
  const { clientIp, apiId } = verification;
  const explained = explainKey({
    check: { view, nowMs, clientIp, apiId, query },
    code,
    recordsAgeMs,
    plan,
    counted: dry.counts && { ...dry.counts, namespaces: await nameNamespaces(parts, dry.counts.limits) },
    policy,
    uncounted: withoutStore && dry.isUncounted ? { ...withoutStore, ...dry.alone } : undefined,
  });
  const counted = verdict.kind === "decided" ? verdict.counted : undefined;
  const retry = counted?.consumed === undefined ? undefined : retryAfterS(counted.code, counted.consumed);
  return { code, view, explained, retryAfterS: retry, nowMs };
}

const NOTHING: ExplainedKey = { steps: [], permissions: { needed: [], held: [], heldCount: 0 }, limits: [] };

function ageOf({ recordsAgeMs }: ExplainParts): number {
  const ageMs = recordsAgeMs();
  return Number.isFinite(ageMs) ? Math.ceil(ageMs) : -1;
}

/** The names of the namespaces of limits, by id; a name that cannot be read is left out. */
async function nameNamespaces(
  { projection }: ExplainParts,
  limits: readonly LimitCharge[],
): Promise<ReadonlyMap<string, string>> {
  const charged = limits.filter(({ scope }) => scope.kind === "namespace");
  const found = await Promise.all(
    charged.map(({ workspaceId, scope }) => projection.findNamespace(workspaceId, scope.value)),
  );
  return new Map(found.flatMap((one) => (one.status === "found" ? [[one.value.id, one.value.name]] : [])));
}

function orReason<T>(read: () => T): T | string {
  try {
    return read();
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Passes on what a verification says, and remembers it. */
class WatchedVerification implements Verification {
  readonly clientIp: string | undefined;
  readonly apiId: string | undefined;
  readonly readsQueryLast: boolean;
  planned: ChargePlan | undefined;
  #found: KeyView | undefined;
  #isSeen = false;
  readonly #real: Verification;

  constructor(real: Verification) {
    this.clientIp = real.clientIp;
    this.apiId = real.apiId;
    this.readsQueryLast = real.readsQueryLast === true;
    this.#real = real;
  }

  /** Only one that the caller may know of. */
  get view(): KeyView | undefined {
    return this.#isSeen ? this.#found : undefined;
  }

  get hidden(): KeyRecord | undefined {
    return this.#isSeen ? undefined : this.#found?.key;
  }

  async find(): Promise<Lookup<KeyView>> {
    const found = await this.#real.find();
    this.#found = found.status === "found" ? found.value : undefined;
    return found;
  }

  maySee(key: KeyRecord): boolean {
    this.#isSeen = this.#real.maySee(key);
    return this.#isSeen;
  }

  readQuery(): Query | undefined {
    return this.#real.readQuery();
  }

  plan(view: KeyView): ChargePlan {
    this.planned = this.#real.plan(view);
    return this.planned;
  }

  withoutStore(plan: ChargePlan): WithoutStore {
    return this.#real.withoutStore(plan);
  }
}

/** Counts as a verification does, but nothing is charged. The time stands still, so that every step is of one moment. */
class DryParts implements VerifyParts {
  /** What was counted; undefined while nothing was, or when the counters do not answer. */
  counts: Omit<SeenCounts, "namespaces"> | undefined;
  /** Whether the counters were asked, answering or not. */
  hasAsked = false;
  /** What was decided without the shared counters. */
  alone: Pick<SeenUncounted, "isAsync" | "alone"> = { isAsync: false, alone: undefined };
  readonly nowMs: () => number;
  readonly counters = { consume: (request: ConsumeRequest): Promise<Consumed> => this.#consume(request) };
  readonly projection: VerifyParts["projection"];
  readonly #overrides: Promise<Lookup<OverrideRecord>>[] = [];
  readonly #parts: ExplainParts;

  constructor(parts: ExplainParts) {
    this.#parts = parts;
    const nowMs = parts.nowMs();
    this.nowMs = () => nowMs;
    this.projection = {
      findOverride: (...of) => {
        const found = parts.projection.findOverride(...of);
        this.#overrides.push(found);
        return found;
      },
    };
  }

  /** What a process has counted is known to it alone; here it has counted nothing, and nothing is shared with others. */
  async countLocally(limits: readonly LimitCharge[]): Promise<Consumed> {
    return this.#countAlone(limits, false);
  }

  #countAlone(limits: readonly LimitCharge[], isAsync: boolean): Consumed {
    const alone = new MemoryCounters(new MemoryStore(this.nowMs)).consumeNow({ limits });
    this.alone = { isAsync, alone };
    return alone;
  }

  /** The credits are read and never asked for; those that are not limited any more are not charged. */
  async loadAndSpend(): Promise<CreditOutcome | undefined> {
    return undefined;
  }

  /** Also where overrides cannot be read, and the counters are not asked. */
  onUncounted(): void {
    this.hasAsked = true;
  }

  get isUncounted(): boolean {
    return this.hasAsked && this.counts === undefined;
  }

  async #consume({ limits, credits }: ConsumeRequest): Promise<Consumed> {
    this.hasAsked = true;
    const overrides = await Promise.all(this.#overrides);
    let consumed: Consumed;
    try {
      consumed = await this.#peek({ limits, credits });
    } catch (error) {
      // As in edge/counters/local.ts: the store is not asked for limits that each process decides.
      const isAsync = credits === undefined && limits.every(({ accuracy }) => accuracy === "local");
      if (!isAsync || !(error instanceof CountersUnavailable)) throw error;
      return this.#countAlone(limits, true);
    }
    const applied = overrides.map((found) => (found.status === "found" ? found.value : undefined));
    this.counts = { limits, consumed, overrides: applied };
    return consumed;
  }

  async #peek({ limits, credits }: ConsumeRequest): Promise<Consumed> {
    const peeked =
      limits.length === 0
        ? { nowMs: this.nowMs(), limits: [], passed: true }
        : await this.#parts.peekLimits(limits.map((charge) => ({ ...charge, accuracy: "strict" })));
    return credits === undefined ? peeked : { ...peeked, credits: await this.#peekCredits(credits, peeked.passed) };
  }

  async #peekCredits(charge: CreditCharge, limitsPassed: boolean): Promise<CreditOutcome> {
    const remaining = await this.#parts.readCredits(charge);
    if (!limitsPassed) return { status: "unreached", remaining };
    if (remaining === undefined) return { status: "unknown" };
    if (charge.cost > remaining) return { status: "refused", remaining };
    return { status: "spent", remaining: remaining - charge.cost };
  }
}
