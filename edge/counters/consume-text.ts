import type { CreditCharge } from "../../core/charges.ts";
import { CountersUnavailable } from "./contract.ts";

/** Content of one CONSUME request, without its keys and its deadline. */
export interface Asked {
  /** Window duration of each counter, in the order of the counters' keys. */
  readonly durations: readonly number[];
  readonly charges: ReadonlyArray<{ readonly limit: number; readonly cost: number }>;
  /** Index of the counter of each charge, from 0. */
  readonly counters: readonly number[];
  readonly dryRun: boolean;
  /** The credit charge. Its three Redis keys come after the keys of the counters. */
  readonly credits?: CreditCharge | undefined;
}

/**
 * Returns the text of a CONSUME request; a plain request has the short form. Throws `CountersUnavailable` for a number that the script
 * cannot handle, so that such a request is not admitted. Schemas usually reject the number earlier.
 */
export function consumeText({ durations, charges, counters, dryRun, credits }: Asked): string {
  for (const durationMs of durations) if (durationMs === 0 || !isCount(durationMs)) throw notANumber(durationMs);
  for (const { limit, cost } of charges) {
    if (!isCount(limit)) throw notANumber(limit);
    if (!isCount(cost)) throw notANumber(cost);
  }
  const [charge] = charges;
  if (charge !== undefined && charges.length === 1 && !dryRun && credits === undefined) {
    return `${durations[0]} ${charge.limit} ${charge.cost}`;
  }
  const keys = durations.length + (credits === undefined ? 0 : 3);
  const args = [keys, durations.length, dryRun ? "1" : "0", credits?.cost ?? "-", credits?.keyId ?? "-", ...durations];
  for (const [i, { limit, cost }] of charges.entries()) args.push((counters[i] ?? 0) + 1, limit, cost);
  return `${args.join(" ")} `;
}

const notANumber = (value: number): Error =>
  new CountersUnavailable(`counting in Redis: ${value} is no limit, cost or window`);

const isCount = (value: number): boolean => Number.isSafeInteger(value) && value >= 0;
