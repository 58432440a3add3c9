import type { Consumed, CreditCharge, LimitCharge } from "../../core/charges.ts";
import type { Closeable } from "../closeable.ts";

/*
 * Counting rate limits and spending credits, where all processes see the same numbers. The arithmetic is
 * core/ratelimits and core/credits (api-v2.md sections 9 and 10); each implementation decides with the store's clock.
 */

export interface ConsumeRequest {
  /**
   * All or nothing. Two charges on one counter see each other's cost. The list must not be changed afterwards, because results
   * derived from it are cached.
   */
  readonly limits: readonly LimitCharge[];
  /** Spent last, only when every limit passed; limits stay consumed when credits refuse. */
  readonly credits?: CreditCharge | undefined;
}

/**
 * The shared store is unreachable, or did not answer in time. What it executes later is not counted; whether it had counted something
 * by then is unknown.
 */
export class CountersUnavailable extends Error {
  override name = "CountersUnavailable";
}

export interface Counters extends Closeable {
  /** One round trip on a single store. Throws `CountersUnavailable`. A consuming call is never sent twice. */
  consume(request: ConsumeRequest): Promise<Consumed>;
}
