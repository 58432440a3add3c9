import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { type RefuseParts, refuse } from "./answering.ts";
import type { Problem } from "./answers.ts";

/*
 * One request of a connection at a time, as RFC 9112 (9.3.2) allows. Clients may send the next before they have the answer
 * to the last, thousands in one packet, and each would be a connection to the app.
 */

/** So many requests of one connection may wait for the answers before theirs; a client that sends more is hung up on. */
const WAITING_MAX = 100;

interface Waiting {
  readonly res: ServerResponse;
  /** Its body turned out to be malformed; it is answered so in its turn. */
  problem: Problem | undefined;
}

/** The oldest first. By the connection and not on it: sockets are Node's. Only those of clients that send ahead are here. */
const waitingOn = new WeakMap<Duplex, Waiting[]>();

export type Begin = (req: IncomingMessage, res: ServerResponse) => void;

/** Begins a request when the answers to all before it have been sent, which is at once for most. */
export function inTurn(parts: RefuseParts, req: IncomingMessage, res: ServerResponse, begin: Begin): void {
  // Node gives a response the connection when all answers before it have been sent.
  if (res.socket !== null) begin(req, res);
  else wait(parts, req, res, begin);
}

function wait(parts: RefuseParts, req: IncomingMessage, res: ServerResponse, begin: Begin): void {
  const { socket } = req;
  const line = waitingOn.get(socket) ?? [];
  if (line.length >= WAITING_MAX) {
    socket.destroy();
    return;
  }
  const waiting: Waiting = { res, problem: undefined };
  line.push(waiting);
  waitingOn.set(socket, line);
  res.once("socket", () => {
    line.shift();
    // Not yet: Node is in the middle of handing the connection over.
    process.nextTick(() => {
      if (waiting.problem === undefined) begin(req, res);
      else refuse(parts, res, waiting.problem);
    });
  });
}

/** The last of the answers that a connection still owes. */
export const lastOwed = (socket: Duplex): ServerResponse | undefined =>
  waitingOn.get(socket)?.at(-1)?.res ?? responseOn(socket);

/** Has the last request of a connection refused when its turn comes; false when it is not waiting for it. */
export function refuseInTurn(socket: Duplex, problem: Problem): boolean {
  const last = waitingOn.get(socket)?.at(-1);
  if (last === undefined) return false;
  last.problem = problem;
  return true;
}

export const owesAnswer = (socket: Duplex): boolean => responseOn(socket) !== undefined;

/** Node keeps the response whose turn it is on the socket, and looks there itself before it answers a client error. */
const responseOn = (socket: Duplex): ServerResponse | undefined =>
  (socket as Duplex & { _httpMessage?: ServerResponse | null })._httpMessage ?? undefined;
