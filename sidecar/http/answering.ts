import type { ShownLimit } from "../../core/ratelimits/limit-headers.ts";
import type { ServerConnection } from "../../http1/server-connection.ts";
import type { ServerExchange } from "../../http1/server-exchange.ts";
import { type Problem, rawProblem, sendProblem } from "./answers.ts";
import type { PieceTurns } from "./piece-turns.ts";

/* Sends a problem so that the client can read it, even while it is still sending. */

export interface AnswerParts {
  /** The base URL of error types. */
  readonly docsUrl: string;
  readonly pieceTurns: PieceTurns;
  readonly nextId: () => string;
  readonly isClosing: () => boolean;
}

export interface RefuseParts {
  readonly answering: AnswerParts;
  /** Counts a malformed request that does not become an exchange. */
  readonly onMalformed: () => void;
}

/** Answers a request with a problem, unless it is answered already. `close` ends the connection afterwards. */
export function answerProblem(
  parts: AnswerParts,
  exchange: ServerExchange,
  problem: Problem,
  { requestId, shown, close }: { requestId: string; shown?: ShownLimit | undefined; close: boolean },
): void {
  // For example because of a fault in the body.
  if (exchange.isOver || exchange.headersSent) return;
  if (close) {
    exchange.keepsAlive = false;
    exchange.lingers = true;
  }
  sendProblem(exchange, problem, { requestId, docsUrl: parts.docsUrl, shown });
}

/** Sends a problem on a connection without a request that could be answered, and ends the connection. */
export function endWithProblem({ docsUrl, nextId }: AnswerParts, connection: ServerConnection, problem: Problem): void {
  const { socket } = connection;
  if (socket.writable) socket.write(rawProblem(problem, { requestId: `req_${nextId()}`, docsUrl }));
  connection.endReading();
}
