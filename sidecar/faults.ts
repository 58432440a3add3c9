import type { Logger } from "pino";
import { Rarely } from "../edge/rarely.ts";
import type { Metrics } from "./metrics.ts";

const MESSAGES = {
  exchange: "a request or connection failed by a fault of the gate, and was ended",
  stray: "an error was caught by nothing else; the gate goes on",
} as const;

/** Logs events that may happen with every request: at most one line per kind in five seconds. */
export class FaultLog {
  readonly #metrics: Metrics;
  readonly #logger: Logger;
  readonly #rarely = new Rarely();

  constructor(metrics: Metrics, logger: Logger) {
    this.#metrics = metrics;
    this.#logger = logger;
  }

  /** An unexpected error was thrown and ended one exchange or connection. Never throws. */
  readonly exchange = (error: unknown, requestId?: string): void => this.#note("exchange", error, requestId);

  /** An error was caught only by the process itself. */
  readonly stray = (error: unknown): void => this.#note("stray", error);

  /** A response of the app cannot be passed on. */
  readonly unusableAnswer = (why: string, requestId: string): void => {
    const answers = this.#rarely.note(why);
    if (answers !== undefined)
      this.#logger.warn({ why, requestId, answers }, "an answer of the app cannot be passed on");
  };

  /** The app sent bytes that no request asked for, such as a second response. */
  readonly unrequestedBytes = (): void => {
    this.#metrics.upstreamUnrequested += 1;
    const suppressed = this.#rarely.note("unrequested");
    if (suppressed !== undefined)
      this.#logger.warn(
        { suppressed },
        "the app sent bytes that no request asked for; for 60 s each request gets a connection of its own",
      );
  };

  #note(where: keyof typeof MESSAGES, error: unknown, requestId?: string): void {
    this.#metrics.faults[where] += 1;
    const faults = this.#rarely.note(where);
    if (faults !== undefined) this.#logger.error({ err: error, requestId, faults }, MESSAGES[where]);
  }
}
