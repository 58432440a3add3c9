import type { Consumed, CreditCharge, CreditOutcome, LimitCharge } from "../../../core/charges.ts";
import type { ConsumeRequest } from "../../../edge/counters/contract.ts";
import type { VerifyParts } from "../../../edge/verification/verify.ts";
import type { Deps } from "../../deps.ts";

/**
 * How an explanation counts: as a verification does, but nothing is counted or spent, and nothing is asked for to be loaded. While the
 * shared counters are unreachable it does not know, where a verification would do what its policy says.
 */
export class DryCounting implements VerifyParts {
  readonly projection: Deps["projection"];
  readonly nowMs: () => number;
  readonly counters = { consume: (request: ConsumeRequest): Promise<Consumed> => this.#consume(request) };
  readonly #deps: Pick<Deps, "peekLimits" | "credits">;

  constructor(deps: Pick<Deps, "projection" | "nowMs" | "peekLimits" | "credits">) {
    this.projection = deps.projection;
    this.nowMs = deps.nowMs;
    this.#deps = deps;
  }

  countLocally(limits: readonly LimitCharge[]): Promise<Consumed> {
    return this.#deps.peekLimits(limits);
  }

  async loadAndSpend(): Promise<CreditOutcome | undefined> {
    return undefined;
  }

  onUncounted(): void {
    // An explanation says it in its answer.
  }

  async #consume({ limits, credits }: ConsumeRequest): Promise<Consumed> {
    const peeked =
      limits.length === 0
        ? { nowMs: this.nowMs(), limits: [], passed: true }
        : await this.#deps.peekLimits(limits.map((charge) => ({ ...charge, accuracy: "strict" })));
    if (credits === undefined) return peeked;
    return { ...peeked, credits: await this.#peekCredits(credits, peeked.passed) };
  }

  async #peekCredits(charge: CreditCharge, limitsPassed: boolean): Promise<CreditOutcome> {
    const remaining = await this.#deps.credits.readRemaining(charge);
    if (!limitsPassed) return { status: "unreached", remaining };
    // Unlimited since the record was read.
    if (remaining === undefined) return { status: "spent", remaining: 0 };
    if (charge.cost > remaining) return { status: "refused", remaining };
    return { status: "spent", remaining: remaining - charge.cost };
  }
}
