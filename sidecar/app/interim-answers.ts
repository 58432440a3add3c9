import type { ServerResponse } from "node:http";
import { interimText, type ReceivedHead } from "./answer-head.ts";

/** So many informational answers of one request are passed on. Each may wait for a client that does not read. */
const INTERIM_MAX = 10;

/** Passes on what an app says before its answer (RFC 9110, 15.2), for instance `103 Early Hints`. */
export class InterimAnswers {
  readonly #res: ServerResponse;
  #count = 0;

  constructor(res: ServerResponse) {
    this.#res = res;
  }

  /** A client of HTTP/1.0 would take it for the answer. The gate has said itself whether to continue. */
  pass(status: number, headers: ReceivedHead["headers"]): void {
    const { req, socket, headersSent } = this.#res;
    if (status === 100 || headersSent || socket === null || req.httpVersion !== "1.1" || this.#count === INTERIM_MAX)
      return;
    this.#count += 1;
    socket.write(interimText(status, headers), "latin1");
  }
}
