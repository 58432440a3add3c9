import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { type RefuseParts, refuse } from "./answering.ts";
import type { Problem } from "./answers.ts";

/*
 * One request of a connection at a time, as RFC 9112 (9.3.2) allows. Clients may pipeline requests, thousands in one packet, and
 * each would otherwise need a connection to the app.
 */

/** The most requests of one connection that may wait for earlier responses; beyond it the connection is closed. */
const WAITING_MAX = 100;

interface Waiting {
  readonly res: ServerResponse;
  /** Its body turned out to be malformed, which is the response when its turn comes. */
  problem: Problem | undefined;
}

/** Oldest first. A map and not a property, because sockets are Node's objects. Has only connections with pipelined requests. */
const waitingOn = new WeakMap<Duplex, Waiting[]>();

export type Begin = (req: IncomingMessage, res: ServerResponse) => void;

/** Starts a request when all earlier responses have been sent, which is usually at once. */
export function inTurn(parts: RefuseParts, req: IncomingMessage, res: ServerResponse, begin: Begin): void {
  // Node assigns the connection to a response when all earlier responses have been sent.
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
    // On the next tick, because Node is still handing the connection over.
    process.nextTick(() => {
      if (waiting.problem === undefined) begin(req, res);
      else refuse(parts, res, waiting.problem);
    });
  });
}

/** Returns the last response that a connection still owes. */
export const lastOwed = (socket: Duplex): ServerResponse | undefined =>
  waitingOn.get(socket)?.at(-1)?.res ?? responseOn(socket);

/** Makes the last request of a connection be refused when its turn comes; returns false when it is not waiting. */
export function refuseInTurn(socket: Duplex, problem: Problem): boolean {
  const last = waitingOn.get(socket)?.at(-1);
  if (last === undefined) return false;
  last.problem = problem;
  return true;
}

export const owesAnswer = (socket: Duplex): boolean => responseOn(socket) !== undefined;

/** Node keeps the current response on the socket under this name, and uses it itself before it answers a client error. */
const responseOn = (socket: Duplex): ServerResponse | undefined =>
  (socket as Duplex & { _httpMessage?: ServerResponse | null })._httpMessage ?? undefined;
