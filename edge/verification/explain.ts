import type { Consumed, CreditCharge, CreditOutcome, LimitCharge } from "../../core/charges.ts";
import { explainKey, notFoundStep } from "../../core/explanation/explain-key.ts";
import { explainCount } from "../../core/explanation/explain-limits.ts";
import type { ExplainedKey, SeenCounts, SeenUncounted, Source } from "../../core/explanation/shapes.ts";
import type { Query } from "../../core/permissions/query.ts";
import type { KeyRecord, OverrideRecord } from "../../core/records.ts";
import type { Code } from "../../core/verification/codes.ts";
import { retryAfterS } from "../../core/verification/conclude.ts";
import type { KeyView } from "../../core/verification/key-view.ts";
import { type ChargePlan, chargesAnything } from "../../core/verification/plan-charges.ts";
import { type ConsumeRequest, CountersUnavailable } from "../counters/contract.ts";
import { MemoryCounters, MemoryStore } from "../counters/memory.ts";
import type { Lookup, MaybePromise, Projection } from "../projection/contract.ts";
import { count, type WithoutStore } from "./count.ts";
import { type Verification, type VerifyDeps, verify } from "./verify.ts";

/*
 * Explains a verification without counting it. The unchanged code in `verify.ts` makes the decision, with a wrapped verification and
 * wrapped dependencies that pass values through, record them, and count nothing. So an explanation never affects other verifications, and
 * reports exactly the values that were decisive.
 */

export interface ExplainDeps {
  /** Returns the shared store's time, Unix ms. */
  readonly nowMs: () => number;
  readonly projection: Pick<Projection, "findOverride" | "findNamespace">;
  /** Returns the age of the records, in ms; `Infinity` if it is unknown. */
  readonly recordsAgeMs: () => number;
  /** Decides limits in the shared store and counts nothing. Rejects with `CountersUnavailable`. */
  readonly peekLimits: (limits: readonly LimitCharge[]) => Promise<Consumed>;
  /**
   * Returns the remaining credits of a key; `undefined` if the key no longer has a credit limit. Rejects with `CountersUnavailable` if the
   * shared store does not respond.
   */
  readonly readCredits: (charge: CreditCharge) => Promise<number | undefined>;
}

export interface Explained {
  /** Code of the verification; `UNKNOWN` if the outcome cannot be decided now. */
  readonly code: Code | "UNKNOWN";
  /** View of the key; `undefined` if the key does not exist or the caller may not see it. */
  readonly view: KeyView | undefined;
  readonly explained: ExplainedKey;
  /** Seconds, rounded up, until a rejected request may be admitted again. */
  readonly retryAfterS: number | undefined;
  /** Timestamp of the decision, Unix ms. */
  readonly nowMs: number;
}

export interface ExplainOptions {
  /** The policy that contains the rule; `undefined` for a call of the API. */
  readonly policy?: Omit<Source, "kind"> | undefined;
  /** Returns the message for a key that is not found. `hidden` is the key if it exists but the caller may not see it. */
  readonly sayNotFound?: (hidden: KeyRecord | undefined) => string;
}

/**
 * Explains what `verify` would decide now. Counts, charges and records nothing, and requests no credit loads. Throws the errors of
 * `verification`, and internal errors.
 */
export async function explain(
  parts: ExplainDeps,
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

  // The explanation also includes later steps, whose errors must not make it fail.
  const query = orReason(() => watched.readQuery());
  const plan = watched.planned ?? orReason(() => watched.plan(view));
  const withoutStore = typeof plan === "string" ? undefined : verification.withoutStore(plan);
  if (typeof plan !== "string" && withoutStore !== undefined && !dry.hasRequested && chargesAnything(plan)) {
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

export interface ExplainedCount extends Pick<Explained, "explained" | "retryAfterS" | "nowMs"> {
  readonly code: "ANONYMOUS" | "RATE_LIMITED" | "UNKNOWN";
}

/** Explains what the limits of a rule would decide now for a request without a key. Counts nothing. */
export async function explainWithoutKey(
  parts: ExplainDeps,
  { plan, withoutStore, policy }: { plan: ChargePlan; withoutStore: WithoutStore; policy: Omit<Source, "kind"> },
): Promise<ExplainedCount> {
  const dry = new DryParts(parts);
  const counted = await count(dry, { plan, withoutStore });
  const explained = explainCount({
    check: { view: undefined },
    recordsAgeMs: ageOf(parts),
    plan,
    counted: dry.counts && { ...dry.counts, namespaces: await nameNamespaces(parts, dry.counts.limits) },
    policy,
    uncounted: dry.isUncounted ? { ...withoutStore, ...dry.alone } : undefined,
  });
  const nowMs = dry.nowMs();
  if (counted.kind === "uncountable") return { code: "UNKNOWN", explained, retryAfterS: undefined, nowMs };
  const code = counted.code === "VALID" ? "ANONYMOUS" : "RATE_LIMITED";
  return { code, explained, retryAfterS: counted.consumed && retryAfterS(counted.code, counted.consumed), nowMs };
}

const NOTHING: ExplainedKey = { steps: [], permissions: { needed: [], held: [], heldCount: 0 }, limits: [] };

function ageOf({ recordsAgeMs }: ExplainDeps): number {
  const ageMs = recordsAgeMs();
  return Number.isFinite(ageMs) ? Math.ceil(ageMs) : -1;
}

/** Returns the names of limit namespaces by id. Omits names that cannot be read. */
async function nameNamespaces(
  { projection }: ExplainDeps,
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

/** Passes values of a verification through and records them. */
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

  /** View of the key; `undefined` if the caller may not see the key. */
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

/** Evaluates limits and credits without charging them. The clock is frozen, so that all steps use the same timestamp. */
class DryParts implements VerifyDeps {
  /** Counted limits; `undefined` until the counters respond. */
  counts: Omit<SeenCounts, "namespaces"> | undefined;
  /** Whether the counters were called, even if they did not respond. */
  hasRequested = false;
  /** The decision made without the shared counters. */
  alone: Pick<SeenUncounted, "isAsync" | "alone"> = { isAsync: false, alone: undefined };
  readonly nowMs: () => number;
  readonly counters = { consume: (request: ConsumeRequest): Promise<Consumed> => this.#consume(request) };
  readonly projection: VerifyDeps["projection"];
  readonly #overrides: MaybePromise<Lookup<OverrideRecord>>[] = [];
  readonly #parts: ExplainDeps;

  constructor(parts: ExplainDeps) {
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

  /** Starts from zero, because local counts exist only in the processes that have counted, and this one has counted nothing. */
  async countLocally(limits: readonly LimitCharge[]): Promise<Consumed> {
    return this.#countAlone(limits, false);
  }

  #countAlone(limits: readonly LimitCharge[], isAsync: boolean): Consumed {
    const alone = new MemoryCounters(new MemoryStore(this.nowMs)).consumeNow({ limits });
    this.alone = { isAsync, alone };
    return alone;
  }

  /**
   * Loads nothing. `#peek` has already read the credits. They are unknown only for keys that no longer have a credit limit, which are not
   * charged.
   */
  async loadAndSpend(): Promise<CreditOutcome | undefined> {
    return undefined;
  }

  /** Called instead of the counters if the overrides cannot be read. */
  onUncounted(): void {
    this.hasRequested = true;
  }

  get isUncounted(): boolean {
    return this.hasRequested && this.counts === undefined;
  }

  async #consume({ limits, credits }: ConsumeRequest): Promise<Consumed> {
    this.hasRequested = true;
    const overrides = await Promise.all(this.#overrides);
    let consumed: Consumed;
    try {
      consumed = await this.#peek({ limits, credits });
    } catch (error) {
      // As in `edge/counters/local.ts`, limits with local accuracy are not decided in the store.
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
