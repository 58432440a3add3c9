import type { Consumed, CreditCharge, LimitCharge } from "../../core/charges.ts";
import type { Closeable } from "../closeable.ts";

/*
 * Counts rate limits and spends credits; all processes see the same numbers. The arithmetic is in core/ratelimits and core/credits
 * (api-v2.md sections 9 and 10); each implementation decides with the store's clock.
 */

export interface ConsumeRequest {
  /**
   * Limits to charge, all or none. If several charges use one counter, each one includes the cost of the earlier ones. The list must not
   * change afterwards, because results derived from it are cached.
   */
  readonly limits: readonly LimitCharge[];
  /** Credits to spend, only if every limit passed. Limits stay consumed if credits are refused. */
  readonly credits?: CreditCharge | undefined;
}

/**
 * The shared store is unreachable, or did not respond in time. Commands that the store executes later are not counted. It is unknown
 * whether the store had already counted some commands.
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
