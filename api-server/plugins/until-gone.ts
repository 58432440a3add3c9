import type { FastifyReply, FastifyRequest } from "fastify";

/*
 * Whether anyone still waits for an answer. A client that closes its connection and one that only ends its direction look the same, and
 * the second gets its answer (connections.ts). So a client that has ended is sent an interim answer now and then, which HTTP/1.1 allows
 * and every client skips: a closed connection refuses the first, and the next one fails.
 */

const ASKED_EVERY_MS = 250;

/**
 * `ApiReply.untilGone` of fastify: a signal that is aborted when the client has gone, and also when it has been answered: then there is nothing left to give
 * up, or it was told that its request took too long.
 */
export function untilGone({ raw: request }: FastifyRequest, { raw: response }: FastifyReply): AbortSignal {
  if (response.closed || response.destroyed) return AbortSignal.abort();
  const controller = new AbortController();
  const { socket } = request;
  let timer: NodeJS.Timeout | undefined;
  const ask = () => {
    if (!response.headersSent) response.writeProcessing();
  };
  const ended = () => {
    // HTTP/1.0 has no interim answers; its query runs until it has its answer.
    if (request.httpVersion !== "1.1") return;
    ask();
    timer = setInterval(ask, ASKED_EVERY_MS);
  };
  if (socket.readableEnded) ended();
  else socket.once("end", ended);
  response.once("close", () => {
    clearInterval(timer);
    socket.off("end", ended);
    controller.abort();
  });
  return controller.signal;
}
