import type { Logger } from "pino";
import { Rarely } from "../edge/rarely.ts";
import type { Metrics } from "./metrics.ts";

const MESSAGES = {
  exchange: "a request or connection failed by a fault of the gate, and was ended",
  stray: "an error was caught by nothing else; the gate goes on",
} as const;

/** What must not fill the log when it happens with every request: each kind has a line at most once in five seconds. */
export class FaultLog {
  readonly #metrics: Metrics;
  readonly #logger: Logger;
  readonly #rarely = new Rarely();

  constructor(metrics: Metrics, logger: Logger) {
    this.#metrics = metrics;
    this.#logger = logger;
  }

  /** Something was thrown that should not have been, and ended one exchange or connection. Never throws. */
  readonly exchange = (error: unknown, requestId?: string): void => this.#note("exchange", error, requestId);

  /** Something was thrown that only the process itself caught. */
  readonly stray = (error: unknown): void => this.#note("stray", error);

  /** An answer of the app cannot be passed on. */
  readonly unusableAnswer = (why: string, requestId: string): void => {
    const answers = this.#rarely.note(why);
    if (answers !== undefined)
      this.#logger.warn({ why, requestId, answers }, "an answer of the app cannot be passed on");
  };

  #note(where: keyof typeof MESSAGES, error: unknown, requestId?: string): void {
    this.#metrics.faults[where] += 1;
    const faults = this.#rarely.note(where);
    if (faults !== undefined) this.#logger.error({ err: error, requestId, faults }, MESSAGES[where]);
  }
}
