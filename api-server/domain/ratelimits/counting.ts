import type { Consumed, CreditCharge, CreditOutcome, LimitCharge } from "../../../core/charges.ts";
import { count, type WithoutStore } from "../../../edge/verification/count.ts";
import type { VerifyParts } from "../../../edge/verification/verify.ts";
import type { Deps } from "../../deps.ts";
import { noteRarely } from "../../note-rarely.ts";

type CountingDeps = Pick<Deps, "projection" | "counters" | "credits" | "log" | "rarely" | "nowMs">;

/**
 * While the shared store is unreachable, each process decides limits by its own counts (api-v2.md section 9.1), so that several may
 * together admit more than the limit.
 */
export const LIMITS_ALONE: WithoutStore = { onCounterFailure: "Local", onCreditFailure: "Deny" };
/** Credits are never granted without the store, and no limits are counted for a call that cannot be decided. */
export const WITH_CREDITS: WithoutStore = { onCounterFailure: "Deny", onCreditFailure: "Deny" };
const QUOTA: WithoutStore = { onCounterFailure: "Allow", onCreditFailure: "Deny" };

const UNCOUNTED = {
  Local: "limits decided in this process: the shared counters are away",
  LocalShare: "limits decided in this process: the shared counters are away",
  Allow: "quotas not counted: the shared counters are away",
} as const;

/** How an api-server counts. Created for each call that counts; it holds only the server's parts. */
export class ServerCounting implements VerifyParts {
  readonly projection: Deps["projection"];
  readonly counters: Deps["counters"];
  readonly nowMs: () => number;
  readonly #deps: CountingDeps;

  constructor(deps: CountingDeps) {
    this.projection = deps.projection;
    this.counters = deps.counters;
    this.nowMs = deps.nowMs;
    this.#deps = deps;
  }

  countLocally(limits: readonly LimitCharge[]): Promise<Consumed> {
    return this.counters.consume({ limits: limits.map((charge) => ({ ...charge, accuracy: "local" })) });
  }

  /** Charges between two changes, for a key whose credits change all the time. */
  async loadAndSpend(charge: CreditCharge): Promise<CreditOutcome | undefined> {
    const { counters, credits } = this.#deps;
    const spent = await credits.loadAndSpend(charge, () => counters.consume({ limits: [], credits: charge }));
    return spent === undefined ? undefined : (spent.credits ?? UNKNOWN);
  }

  onUncounted(_what: "limits" | "credits", done: WithoutStore["onCounterFailure"], cause: unknown): void {
    // A refusal throws its own error, which is logged where it is answered.
    if (done === "Deny") return;
    noteRarely(this.#deps, {
      reason: cause instanceof Error ? cause.message : String(cause),
      message: UNCOUNTED[done],
    });
  }
}

const UNKNOWN: CreditOutcome = { status: "unknown" };

/** Consumes limits, all or none; by this process's own counts while the shared store is unreachable. */
export async function consumeLimits(deps: CountingDeps, limits: readonly LimitCharge[]): Promise<Consumed> {
  const consumed = await consume(deps, { limits, withoutStore: LIMITS_ALONE });
  if (consumed === undefined) throw new Error("limits are counted in this process when nothing else can be");
  return consumed;
}

/** Counts against a workspace's quota. Returns undefined when the store is unreachable: a quota must not cause an outage. */
export const consumeQuota = (deps: CountingDeps, quota: LimitCharge): Promise<Consumed | undefined> =>
  consume(deps, { limits: [quota], withoutStore: QUOTA });

async function consume(
  deps: CountingDeps,
  {
    limits,
    withoutStore,
  }: {
    readonly limits: readonly LimitCharge[];
    readonly withoutStore: WithoutStore;
  },
): Promise<Consumed | undefined> {
  const plan = { limits, shared: [], credits: undefined };
  const counted = await count(new ServerCounting(deps), { plan, withoutStore });
  if (counted.kind === "uncountable") throw counted.cause;
  return counted.consumed;
}
