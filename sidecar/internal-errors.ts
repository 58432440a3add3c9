import type { Logger } from "pino";
import { LogThrottle } from "../edge/log-throttle.ts";
import type { Metrics } from "./metrics.ts";

const MESSAGES = {
  exchange: "an internal error of the gate ended a request or connection",
  stray: "an uncaught error occurred; the gate continues",
} as const;

/** Logs events that any request can cause: at most one line per kind every 5 s. */
export class InternalErrorLog {
  readonly #metrics: Metrics;
  readonly #logger: Logger;
  readonly #throttle = new LogThrottle();

  constructor(metrics: Metrics, logger: Logger) {
    this.#metrics = metrics;
    this.#logger = logger;
  }

  /** Logs an unexpected error that ended one exchange or connection. Never throws. */
  readonly exchange = (error: unknown, requestId?: string): void => this.#note("exchange", error, requestId);

  /** Logs an error that no exchange or connection caught. */
  readonly stray = (error: unknown): void => this.#note("stray", error);

  /** Logs that a response from the app cannot be forwarded. */
  readonly unusableResponse = (why: string, requestId: string): void => {
    const responses = this.#throttle.note(why);
    if (responses !== undefined)
      this.#logger.warn({ why, requestId, responses }, "a response of the app cannot be forwarded");
  };

  /** Logs that the app sent bytes without a request, such as a second response. */
  readonly unrequestedBytes = (): void => {
    this.#metrics.upstreamUnrequested += 1;
    const suppressed = this.#throttle.note("unrequested");
    if (suppressed !== undefined)
      this.#logger.warn(
        { suppressed },
        "the app sent bytes without a request; for 60 s each request gets a connection of its own",
      );
  };

  #note(where: keyof typeof MESSAGES, error: unknown, requestId?: string): void {
    this.#metrics.internalErrors[where] += 1;
    const internalErrors = this.#throttle.note(where);
    if (internalErrors !== undefined) this.#logger.error({ err: error, requestId, internalErrors }, MESSAGES[where]);
  }
}
