import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { endWithProblem, type RefuseParts, refuse } from "./answering.ts";
import { type Problem, versionProblem } from "./answers.ts";
import { lastOwed, refuseInTurn } from "./turns.ts";

/** Connections whose input is not parsed any more, because their end is decided. Kept here because sockets are Node's objects. */
const refused = new WeakSet<Duplex>();

/**
 * Handles a parser error. The responses to earlier requests are sent first, because a client would take ours for the first of
 * them. When the broken request's own response is being sent, no other response can follow it.
 */
export function onClientError(parts: RefuseParts, error: NodeJS.ErrnoException, socket: Duplex): void {
  // The parser reports more errors while the response to the first one is being sent.
  if (socket.writableEnded || refused.has(socket)) return;
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const isTooSlow = error.code === "ERR_HTTP_REQUEST_TIMEOUT";
  const owed = lastOwed(socket);
  if (isTooSlow && owed === undefined && (socket as Socket).bytesRead === 0) {
    // It has sent no request: a response would be taken for one to its next request.
    socket.destroy();
    return;
  }
  refused.add(socket);
  const problem = isTooSlow ? HEAD_TOO_SLOW : describeParserError(error);
  const end = (): void => {
    parts.onMalformed();
    endWithProblem(parts.answering, socket, problem);
  };
  if (owed === undefined) end();
  else if (owed.req.complete) {
    socket.pause();
    owed.once("finish", end);
  } else if (refuseInTurn(socket, problem)) return;
  else if (owed.headersSent) socket.destroy();
  else refuse(parts, owed, problem);
}

const HEAD_TOO_SLOW: Problem = { kind: "request_timeout", detail: "The head of the request did not come in time." };

/** The parser's reasons describe only the format, and quote nothing of what was sent. */
function describeParserError(error: NodeJS.ErrnoException & { reason?: string }): Problem {
  if (error.code === "HPE_INVALID_VERSION") return versionProblem;
  const detail =
    error.code === "HPE_HEADER_OVERFLOW"
      ? "The head of the request is too long."
      : `The request is not HTTP/1.1${error.reason === undefined ? "" : `: ${error.reason}`}.`;
  return { kind: "malformed_request", detail };
}
