import type { Consumed, CreditCharge, LimitCharge } from "../../core/charges.ts";
import type { Closeable } from "../closeable.ts";

/*
 * Counts rate limits and spends credits, with the same numbers in all processes. The arithmetic is in core/ratelimits and core/credits
 * (api-v2.md sections 9 and 10). Each implementation decides by the store's clock.
 */

export interface ConsumeRequest {
  /**
   * Limits to charge, either all or none. If several charges use one counter, each charge includes the cost of the earlier ones. The list
   * must not change afterwards, because results derived from it are cached.
   */
  readonly limits: readonly LimitCharge[];
  /** Credits to spend, only if every limit passed. Limits stay consumed if credits are refused. */
  readonly credits?: CreditCharge | undefined;
}

/**
 * The shared store is unreachable, or did not respond in time. Commands that it executes later count nothing, but it is unknown whether it
 * had already counted some commands.
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
