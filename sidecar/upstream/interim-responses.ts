import type { ServerExchange } from "../../http/http1/server-exchange.ts";
import { interimLines } from "./response-head.ts";

/** Maximum informational responses forwarded per request, because a client may not read them. */
const INTERIM_MAX = 10;

/** Forwards informational responses of the app (RFC 9110, 15.2), such as `103 Early Hints`. */
export class InterimResponses {
  readonly #exchange: ServerExchange;
  #count = 0;

  constructor(exchange: ServerExchange) {
    this.#exchange = exchange;
  }

  /** Skips clients of HTTP/1.0, which would take it for the final response, and 100, because the gate answers `Expect` itself. */
  pass(status: number, headers: readonly string[]): void {
    if (status === 100 || this.#count === INTERIM_MAX) return;
    this.#count += 1;
    this.#exchange.writeInterim(status, interimLines(headers));
  }
}
