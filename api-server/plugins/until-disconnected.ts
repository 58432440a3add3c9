import type { FastifyReply, FastifyRequest } from "fastify";

/*
 * Detects disconnected clients. To the server, a client that closes its connection looks like one that only half-closes it, and a client
 * that half-closes must still get its response (connections.ts). The server therefore sends such a client interim responses at intervals,
 * which HTTP/1.1 allows and clients ignore. If the client has closed the connection, the first interim response causes a reset, so sending
 * the next one fails.
 */

const ASKED_EVERY_MS = 250;

/**
 * Implements `ApiReply.untilDisconnected` for fastify: a signal that is aborted when the client disconnects, or when the response has been
 * sent, for example after a timeout.
 */
export function untilDisconnected({ raw: request }: FastifyRequest, { raw: response }: FastifyReply): AbortSignal {
  if (response.closed || response.destroyed) return AbortSignal.abort();
  const controller = new AbortController();
  const { socket } = request;
  let timer: NodeJS.Timeout | undefined;
  const ask = () => {
    if (!response.headersSent) response.writeProcessing();
  };
  const ended = () => {
    // HTTP/1.0 has no interim responses, so a query over HTTP/1.0 runs to completion even if its client has disconnected.
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
