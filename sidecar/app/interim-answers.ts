import type { ServerResponse } from "node:http";
import { interimText, type ReceivedHead } from "./answer-head.ts";

/** The most informational responses of one request that are passed on, because a client may not read them. */
const INTERIM_MAX = 10;

/** Passes on informational responses of the app (RFC 9110, 15.2), such as `103 Early Hints`. */
export class InterimAnswers {
  readonly #res: ServerResponse;
  #count = 0;

  constructor(res: ServerResponse) {
    this.#res = res;
  }

  /** Not to a client of HTTP/1.0, which would take it for the response, and no 100, because the gate answers `Expect` itself. */
  pass(status: number, headers: ReceivedHead["headers"]): void {
    const { req, socket, headersSent } = this.#res;
    if (status === 100 || headersSent || socket === null || req.httpVersion !== "1.1" || this.#count === INTERIM_MAX)
      return;
    this.#count += 1;
    socket.write(interimText(status, headers), "latin1");
  }
}
