import type { Consumed, CreditCharge, CreditOutcome, LimitCharge } from "../../../core/charges.ts";
import { logThrottled } from "../../../edge/log-throttle.ts";
import { count, type WithoutStore } from "../../../edge/verification/count.ts";
import type { VerifyDeps } from "../../../edge/verification/verify.ts";
import type { CountingDeps } from "../deps.ts";

/**
 * Counting without Redis: each process evaluates limits with its own counts (api-v2.md section 9.1), so several processes together can
 * admit more than the limit.
 */
export const LIMITS_ALONE: WithoutStore = { onCounterFailure: "Local", onCreditFailure: "Deny" };
/**
 * Counting without Redis for calls that spend credits. Credits cannot be spent without Redis, so such a call is not decided, and its limits
 * are not counted either.
 */
export const WITH_CREDITS: WithoutStore = { onCounterFailure: "Deny", onCreditFailure: "Deny" };
const QUOTA: WithoutStore = { onCounterFailure: "Allow", onCreditFailure: "Deny" };

const UNCOUNTED = {
  Local: "limits decided in this process: the shared counters are away",
  LocalShare: "limits decided in this process: the shared counters are away",
  Allow: "quotas not counted: the shared counters are away",
} as const;

/**
 * Counting in an api-server. Each call creates an instance. This is cheap, because an instance has only references to the server's
 * components.
 */
export class ServerCounting implements VerifyDeps {
  readonly projection: CountingDeps["projection"];
  readonly counters: CountingDeps["counters"];
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

  /**
   * Loads the counter and spends from it in one step, because the counter of a key whose credits change constantly could be suspended again
   * before it is used.
   */
  async loadAndSpend(charge: CreditCharge): Promise<CreditOutcome | undefined> {
    const { counters, credits } = this.#deps;
    const spent = await credits.loadAndSpend(charge, () => counters.consume({ limits: [], credits: charge }));
    return spent === undefined ? undefined : (spent.credits ?? UNKNOWN);
  }

  onUncounted(_what: "limits" | "credits", done: WithoutStore["onCounterFailure"], cause: unknown): void {
    // A denied call throws its own error, which is logged when the response is sent.
    if (done === "Deny") return;
    logThrottled(this.#deps, {
      reason: cause instanceof Error ? cause.message : String(cause),
      message: UNCOUNTED[done],
    });
  }
}

const UNKNOWN: CreditOutcome = { status: "unknown" };

/** Consumes units of either all limits or none. While Redis is unreachable, the counts of this process decide. */
export async function consumeLimits(deps: CountingDeps, limits: readonly LimitCharge[]): Promise<Consumed> {
  const consumed = await consume(deps, { limits, withoutStore: LIMITS_ALONE });
  if (consumed === undefined) throw new Error("limits are counted in this process when nothing else can be");
  return consumed;
}

/**
 * Counts against a workspace's quota. Returns `undefined` if Redis is unreachable: the request is then admitted, because a quota must not
 * cause an outage.
 */
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
