import type { CreditsState } from "../../../core/credits/credits.ts";
import type { CreditRow } from "../../credits/service.ts";

/** Converts stored credits to the type that core/credits uses. A refill amount without a day is a daily refill. */
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

/** Inverse of `toCreditsState`; `undefined` means unlimited. */
export function toCreditRow({ remaining, refill }: CreditsState): CreditRow | undefined {
  if (remaining === null) return undefined;
  return { remaining, refillAmount: refill?.amount ?? null, refillDay: refill?.refillDay ?? null };
}
