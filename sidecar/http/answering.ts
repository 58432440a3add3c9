import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { ShownLimit } from "../../core/ratelimits/limit-headers.ts";
import { type Problem, rawProblem, sendProblem } from "./answers.ts";
import { drainBody, endReading, lingerAfterAnswer } from "./linger.ts";
import type { PieceTurns } from "./piece-turns.ts";

/* Sends a problem so that the client can read it, even while it is still sending. */

export interface AnswerParts {
  /** The base URL of error types. */
  readonly docsUrl: string;
  /** How much of the body of a refused request is read. */
  readonly drainBytesMax: number;
  readonly pieceTurns: PieceTurns;
  readonly nextId: () => string;
  readonly isClosing: () => boolean;
}

/** Answers a request with a problem. `close` ends the connection afterwards. */
export function answerProblem(
  parts: AnswerParts,
  res: ServerResponse,
  problem: Problem,
  options: { requestId: string; shown?: ShownLimit | undefined; close: boolean },
): void {
  const { req } = res;
  // Already answered, for example because of a fault in the body.
  if (res.destroyed || res.headersSent) return;
  const { requestId, shown } = options;
  const close = options.close || parts.isClosing();
  if (close && (!parts.isClosing() || !req.complete)) lingerAfterAnswer(req.socket);
  sendProblem(res, problem, { requestId, docsUrl: parts.docsUrl, shown, close });
  if (!close) drainBody(req, { bytesMax: parts.drainBytesMax, turns: parts.pieceTurns });
}

/** Sends a problem on a connection without a request that could be answered, and ends the connection. */
export function endWithProblem({ docsUrl, nextId }: AnswerParts, socket: Duplex, problem: Problem): void {
  socket.on("error", () => socket.destroy());
  if (!socket.writable) return;
  socket.write(rawProblem(problem, { requestId: `req_${nextId()}`, docsUrl }));
  endReading(socket as Socket);
}

export interface RefuseParts {
  readonly answering: AnswerParts;
  /** Counts a malformed request that does not become an exchange. */
  readonly onMalformed: () => void;
}

/** Answers a request that did not become an exchange, and ends the connection. */
export function refuse({ answering, onMalformed }: RefuseParts, res: ServerResponse, problem: Problem): void {
  onMalformed();
  answerProblem(answering, res, problem, { requestId: `req_${answering.nextId()}`, close: true });
}
