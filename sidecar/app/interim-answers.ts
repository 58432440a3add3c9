import type { ServerExchange } from "../../http1/server-exchange.ts";
import { interimLines } from "./answer-head.ts";

/** The most informational responses of one request that are passed on, because a client may not read them. */
const INTERIM_MAX = 10;

/** Passes on informational responses of the app (RFC 9110, 15.2), such as `103 Early Hints`. */
export class InterimAnswers {
  readonly #exchange: ServerExchange;
  #count = 0;

  constructor(exchange: ServerExchange) {
    this.#exchange = exchange;
  }

  /** Not to a client of HTTP/1.0, which would take it for the response, and no 100, because the gate answers `Expect` itself. */
  pass(status: number, headers: readonly string[]): void {
    if (status === 100 || this.#count === INTERIM_MAX) return;
    this.#count += 1;
    this.#exchange.writeInterim(status, interimLines(headers));
  }
}
