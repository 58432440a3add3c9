import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { PieceTurns } from "./piece-turns.ts";

/*
 * How a connection ends so that the client gets to read what it was answered. Closing a socket with unread bytes resets it,
 * and a reset takes from the client even what had reached it; and many clients look for an answer only when they have sent
 * everything. So what still comes is read and forgotten, for a bounded time and in bounded numbers.
 */

const DRAIN_IDLE_MS = 10_000;
/** The parser's work is by the chunk, whatever its size. */
const DRAIN_PIECES_MAX = 10_000;
const LINGER_MS = 5_000;
const LINGER_BYTES_MAX = 64 * 1024 * 1024;

/**
 * Reads the rest of a body that nobody wants, after the answer, so that the connection can be used again. Past `bytesMax`, or
 * when nothing comes for ten seconds, the connection is ended.
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
  // Node closes a connection that is silent for so long; with the next request it sets the timeout anew.
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
 * For an answer after which Node closes the connection, given before the request's body is there: the connection is closed
 * only when the body has come, or some seconds later. The body has to be read meanwhile.
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

/** For a connection that its answer ends, although the client may still be sending: Node would close it at once. */
export function lingerAfterAnswer(socket: Socket): void {
  socket.destroySoon = () => endReading(socket);
}

/** Connections of which nothing is parsed any more. */
const lingering = new WeakSet<Socket>();

/** Ends our direction, and takes no notice of what still comes until the client ends its own. Not for ever, though. */
export function endReading(socket: Socket): void {
  if (socket.destroyed || lingering.has(socket)) return;
  lingering.add(socket);
  let bytes = 0;
  // Not through the parser any more.
  socket.removeAllListeners("data");
  socket.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > LINGER_BYTES_MAX) socket.pause();
  });
  socket.resume();
  socket.end();
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}
