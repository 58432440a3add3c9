import type { ShownLimit } from "../../core/ratelimits/limit-headers.ts";
import type { ServerConnection } from "../../http/http1/server-connection.ts";
import type { ServerExchange } from "../../http/http1/server-exchange.ts";
import type { ReadScheduler } from "./read-scheduler.ts";
import { type Problem, rawProblem, sendProblem } from "./responses.ts";

/* Sends a problem in a way that lets even a client that is still sending its request read the problem. */

export interface ResponseDeps {
  /** Base URL of error types. */
  readonly docsUrl: string;
  readonly readScheduler: ReadScheduler;
  readonly nextId: () => string;
  readonly isClosing: () => boolean;
}

export interface RefuseDeps {
  readonly answering: ResponseDeps;
  /** Counts a malformed request for which no exchange was created. */
  readonly onMalformed: () => void;
}

/** Responds to a request with a problem, unless a response has begun. `close` closes the connection afterwards. */
export function answerProblem(
  deps: ResponseDeps,
  exchange: ServerExchange,
  problem: Problem,
  { requestId, shown, close }: { requestId: string; shown?: ShownLimit | undefined; close: boolean },
): void {
  // A response may already have begun, for example because of a parse error in the body.
  if (exchange.isOver || exchange.headersSent) return;
  if (close) {
    exchange.keepsAlive = false;
    exchange.lingers = true;
  }
  sendProblem(exchange, problem, { requestId, docsUrl: deps.docsUrl, shown });
}

/** Sends a problem on a connection from which no request could be read, and closes the connection. */
export function endWithProblem(
  { docsUrl, nextId }: ResponseDeps,
  connection: ServerConnection,
  problem: Problem,
): void {
  const { socket } = connection;
  if (socket.writable) socket.write(rawProblem(problem, { requestId: `req_${nextId()}`, docsUrl }));
  connection.endReading();
}
