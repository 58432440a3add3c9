import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { ShownLimit } from "../../core/ratelimits/limit-headers.ts";
import { type Problem, rawProblem, sendProblem } from "./answers.ts";
import { drainBody, endReading, lingerAfterAnswer } from "./linger.ts";
import type { PieceTurns } from "./piece-turns.ts";

/* How a problem is answered so that the client gets to read it, whatever it is still sending. */

export interface AnswerParts {
  /** What error types begin with. */
  readonly docsUrl: string;
  /** Of a body that is refused, read to its end up to here. */
  readonly drainBytesMax: number;
  readonly pieceTurns: PieceTurns;
  readonly nextId: () => string;
  readonly isClosing: () => boolean;
}

/** Answers a request with a problem. `close` ends the connection after it. */
export function answerProblem(
  parts: AnswerParts,
  res: ServerResponse,
  problem: Problem,
  options: { requestId: string; shown?: ShownLimit | undefined; close: boolean },
): void {
  const { req } = res;
  // Answered already: what came after a fault in the body, for one.
  if (res.destroyed || res.headersSent) return;
  const { requestId, shown } = options;
  const close = options.close || parts.isClosing();
  if (close && (!parts.isClosing() || !req.complete)) lingerAfterAnswer(req.socket);
  sendProblem(res, problem, { requestId, docsUrl: parts.docsUrl, shown, close });
  if (!close) drainBody(req, { bytesMax: parts.drainBytesMax, turns: parts.pieceTurns });
}

/** Answers on a connection on which there is no request to answer; it ends with that. */
export function endWithProblem({ docsUrl, nextId }: AnswerParts, socket: Duplex, problem: Problem): void {
  socket.on("error", () => socket.destroy());
  if (!socket.writable) return;
  socket.write(rawProblem(problem, { requestId: `req_${nextId()}`, docsUrl }));
  endReading(socket as Socket);
}

export interface RefuseParts {
  readonly answering: AnswerParts;
  /** Counts a malformed request that never becomes an exchange. */
  readonly onMalformed: () => void;
}

/** Answers a request that never became an exchange; the connection ends with it. */
export function refuse({ answering, onMalformed }: RefuseParts, res: ServerResponse, problem: Problem): void {
  onMalformed();
  answerProblem(answering, res, problem, { requestId: `req_${answering.nextId()}`, close: true });
}
