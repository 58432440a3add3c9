import type { Logger } from "pino";
import { type Consumed, type ConsumeRequest, type Counters, CountersUnavailable } from "../edge/counters/contract.ts";

/**
 * Decides limits in this process while the shared store is away (api/v2 section 9.1): an outage of Redis must not be one of
 * everybody's API. Credits are money, so a call that charges them fails with CountersUnavailable instead.
 */
export function withFallback(
  shared: Counters,
  { local, log }: { local: Counters; log: Pick<Logger, "warn"> },
): Counters {
  let away = false;
  async function consume(request: ConsumeRequest): Promise<Consumed> {
    try {
      const consumed = await shared.consume(request);
      away = false;
      return consumed;
    } catch (error) {
      if (!(error instanceof CountersUnavailable) || request.credits !== undefined) throw error;
      if (!away) log.warn({ reason: error.message }, "counters unreachable, limits are decided in this process");
      away = true;
      return local.consume(request);
    }
  }
  return {
    consume,
    close: async () => {
      await shared.close();
      await local.close();
    },
  };
}
