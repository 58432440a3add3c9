import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { PieceTurns } from "./piece-turns.ts";

/*
 * Ends a connection so that the client can read its response. Closing a socket with unread bytes resets it,
 * and a reset discards even what has already reached the client; and many clients read the response only after they have sent
 * everything. So what still arrives is read and discarded, for a limited time and amount.
 */

const DRAIN_IDLE_MS = 10_000;
/** The parser's work is per chunk, whatever its size. */
const DRAIN_PIECES_MAX = 10_000;
const LINGER_MS = 5_000;
const LINGER_BYTES_MAX = 64 * 1024 * 1024;

/**
 * Reads and discards the rest of a body after the response, so that the connection can be reused. Beyond `bytesMax`, or
 * when nothing arrives for ten seconds, the connection is closed.
 */
export function drainBody(
  request: IncomingMessage,
  { bytesMax, turns }: { bytesMax: number; turns: PieceTurns },
): void {
  if (request.complete) return;
  const { socket } = request;
  lingerForBody(request);
  let bytes = 0;
  let pieces = 0;
  // Node closes a connection that is silent for this long; the next request sets the timeout again.
  socket.setTimeout(DRAIN_IDLE_MS);
  request.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    pieces += 1;
    turns.count(socket);
    if (bytes > bytesMax || pieces > DRAIN_PIECES_MAX) endReading(socket);
  });
  request.on("error", () => {});
  request.resume();
}

/**
 * For a response after which Node closes the connection, sent before the request's body has arrived: delays closing until
 * the body has arrived, or some seconds have passed. The body must be read meanwhile.
 */
function lingerForBody(request: IncomingMessage): void {
  const { socket } = request;
  const { destroySoon } = socket;
  const closeNow = (): void => {
    if (!socket.destroyed) destroySoon.call(socket);
  };
  socket.destroySoon = () => {
    socket.destroySoon = destroySoon;
    if (request.complete) {
      closeNow();
      return;
    }
    socket.end();
    request.once("end", closeNow);
    setTimeout(() => socket.destroy(), LINGER_MS).unref();
  };
}

/** For a connection that ends with its response although the client may still be sending: Node would close it at once. */
export function lingerAfterAnswer(socket: Socket): void {
  socket.destroySoon = () => endReading(socket);
}

/** Connections that are not parsed any more. */
const lingering = new WeakSet<Socket>();

/** Ends our direction, and discards what still arrives until the client ends its own, for a limited time. */
export function endReading(socket: Socket): void {
  if (socket.destroyed || lingering.has(socket)) return;
  lingering.add(socket);
  let bytes = 0;
  // Bypasses the parser from now on.
  socket.removeAllListeners("data");
  socket.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > LINGER_BYTES_MAX) socket.pause();
  });
  socket.resume();
  socket.end();
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}
