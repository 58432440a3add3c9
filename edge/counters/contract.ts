import type { Consumed, CreditCharge, LimitCharge } from "../../core/charges.ts";
import type { Closeable } from "../closeable.ts";

/*
 * Counts rate limits and spends credits, with the same results in all processes. The arithmetic is in core/ratelimits and core/credits
 * (api-v2.md sections 9 and 10). Each implementation uses the store's clock.
 */

export interface ConsumeRequest {
  /**
   * Limits to charge: all of them, or none if one denies. If several charges use one counter, each also counts the cost of those before it.
   * The list must not be modified afterwards, because results derived from it are cached.
   */
  readonly limits: readonly LimitCharge[];
  /** Credits to spend, but only if every limit passed. If the credits are refused, the limits stay charged. */
  readonly credits?: CreditCharge | undefined;
}

/**
 * The shared store is unreachable, or did not respond in time. A command that the store executes after its deadline counts nothing, but it
 * is unknown whether other commands were counted before.
 */
export class CountersUnavailable extends Error {
  override name = "CountersUnavailable";
}

export interface Counters extends Closeable {
  /**
   * Consumes limits and credits in one round trip on a single Redis. Throws `CountersUnavailable`. A call that consumes units is never sent
   * twice.
   */
  consume(request: ConsumeRequest): Promise<Consumed>;
}
