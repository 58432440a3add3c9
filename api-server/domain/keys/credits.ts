import type { CreditsState } from "../../../core/credits/credits.ts";
import type { CreditRow } from "../../credits/service.ts";

/** Credits as the rules of core/credits see them, from how they are stored: an amount without a day is daily. */
export function toCreditsState(row: CreditRow | undefined): CreditsState {
  if (row === undefined) return { remaining: null };
  const { remaining, refillAmount, refillDay } = row;
  if (refillAmount === null) return { remaining };
  return {
    remaining,
    refill:
      refillDay === null
        ? { interval: "daily", amount: refillAmount }
        : { interval: "monthly", amount: refillAmount, refillDay },
  };
}

/** The other way round; undefined is unlimited. */
export function toCreditRow({ remaining, refill }: CreditsState): CreditRow | undefined {
  if (remaining === null) return undefined;
  return { remaining, refillAmount: refill?.amount ?? null, refillDay: refill?.refillDay ?? null };
}
