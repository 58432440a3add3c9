import * as z from "zod";
import type { CreditsState } from "../../../core/credits/credits.ts";
import type { KeyRow } from "../../db/keys.ts";
import { invalidField } from "../../domain/refusals/refusals.ts";
import { unixMs } from "../schemas.ts";

/*
 * v1 has the members `remaining` and `refill` for what v2 has in `credits` (api-v1.md section 5).
 */

const Interval = z
  .enum(["daily", "monthly"])
  .describe("Interval at which credits are added, at midnight UTC.")
  .meta({ examples: ["monthly"] });

const Amount = z
  .int()
  .min(1)
  .describe("Credits added at each refill.")
  .meta({ examples: [1000] });

const RefillDay = z
  .int()
  .min(1)
  .max(31)
  .meta({ examples: [1] });

export const LegacyRefill = z
  .object({
    interval: Interval,
    amount: Amount,
    refillDay: RefillDay.optional().describe(
      "Day of the month; only with `monthly`. Default: 1. In a shorter month, credits are added on its last day.",
    ),
  })
  .describe("Refill of the credits. Not allowed with unlimited credits.")
  .meta({ examples: [{ interval: "monthly", amount: 1000, refillDay: 1 }] });
export type LegacyRefill = z.output<typeof LegacyRefill>;

/** Throws PublicError 400, with `field` as its location, if the members of a refill contradict each other. */
export function checkLegacyRefill(refill: LegacyRefill | null | undefined, field = "body.refill"): void {
  if (refill?.interval === "daily" && refill.refillDay !== undefined) {
    throw invalidField(`${field}.refillDay`, "a daily refill must not have a day");
  }
}

/** Converts a refill to its v2 form. Must be called after `checkLegacyRefill`. */
export const toRefill = ({ interval, amount, refillDay = 1 }: LegacyRefill): NonNullable<CreditsState["refill"]> =>
  interval === "daily" ? { interval, amount } : { interval, amount, refillDay };

/** Returns the credits of a new key; `undefined` if unlimited. Throws PublicError 400 for a refill of unlimited credits. */
export function toCredits(
  { remaining, refill }: { readonly remaining?: number | undefined; readonly refill?: LegacyRefill | undefined },
  field = "body.refill",
): CreditsState | undefined {
  checkLegacyRefill(refill, field);
  if (remaining !== undefined) return refill === undefined ? { remaining } : { remaining, refill: toRefill(refill) };
  if (refill !== undefined) throw invalidField(field, "a refill requires `remaining`");
  return undefined;
}

export const LegacyRefillOut = z.object({
  interval: Interval,
  amount: Amount,
  refillDay: RefillDay.nullable().describe("Day of the month of a monthly refill; null for a daily one."),
  lastRefillAt: unixMs(
    "When credits were last added or the refill was set, Unix milliseconds; omitted if unknown.",
  ).optional(),
});

/** Returns the refill in its v1 form; `undefined` if there is none. An amount without a day is a daily refill. */
export function toLegacyRefill(
  row: Pick<KeyRow, "refill_amount" | "refill_day" | "last_refill_at">,
): z.input<typeof LegacyRefillOut> | undefined {
  const { refill_amount: amount, refill_day: refillDay, last_refill_at: lastRefillAt } = row;
  if (amount === null) return undefined;
  const interval = refillDay === null ? "daily" : "monthly";
  return { interval, amount, refillDay, ...(lastRefillAt === null ? {} : { lastRefillAt }) };
}
