import type { ServerExchange } from "../../http/http1/server-exchange.ts";
import { interimLines } from "./response-head.ts";

/**
 * Maximum number of informational responses that are forwarded per request, because they would accumulate for a client that does not read
 * them.
 */
const INTERIM_MAX = 10;

/** Forwards informational responses from the app (RFC 9110, 15.2), such as `103 Early Hints`. */
export class InterimResponses {
  readonly #exchange: ServerExchange;
  #count = 0;

  constructor(exchange: ServerExchange) {
    this.#exchange = exchange;
  }

  /**
   * Forwards an informational response, except to HTTP/1.0 clients, which would treat it as the final response, and except 100, because the
   * gate handles `Expect` itself.
   */
  pass(status: number, headers: readonly string[]): void {
    if (status === 100 || this.#count === INTERIM_MAX) return;
    this.#count += 1;
    this.#exchange.writeInterim(status, interimLines(headers));
  }
}
