import type { Socket } from "node:net";
import { performance } from "node:perf_hooks";
import { MessageParser } from "../../http1/message-parser.ts";
import { DIRECT_BYTES_BOUND, type DirectHead, readDirectHead } from "./direct-head.ts";
import { type DirectOwner, DirectRequest, type DirectRoute } from "./direct-request.ts";

/*
 * A connection as long as its requests are plain calls of the hot procedures. They are answered one after another.
 *
 *   waiting ──a whole plain request──► answering ──response, and its client has taken it──► waiting
 *      │ │  ▲ all of it                       └── the client has ended, or it is the last ──► closed
 *      │ └──┴─► gathering ──too slow──┐
 *      └── anything else ─────────────┴──► left to Node, for good, with all bytes of the request: as if they had only come now
 *
 * What comes while a request is answered stays in the socket, which is paused. So a client that sends any number of requests and reads nothing
 * makes the server keep what Node's socket reads ahead (two reads of 64 KiB), and of responses the 64 KiB up to which a socket takes more, and one. Nothing is
 * answered in Node's place: a request that is malformed, large, slow, or of another procedure has not been touched when Node gets it.
 */

/** The address of a client by that of its connection, and what `X-Forwarded-For` says. */
export type AddressBehindProxies = (connection: string, forwardedFor: string | undefined) => string;

/** What all connections share. */
export interface DirectParts {
  readonly routes: ReadonlyMap<string, DirectRoute>;
  /** undefined: no proxy is trusted, and the client is who has connected. */
  readonly addressBehindProxies: AddressBehindProxies | undefined;
  readonly nextRequestId: () => string;
  readonly headBytesMax: number;
  readonly keepAliveLines: string;
  /** No further request is served directly, and each response is the last of its connection. */
  readonly isStopping: () => boolean;
  /** A request is served, at this time by `performance.now()`. */
  readonly onRequest: (nowMs: number) => void;
  /** The connection is Node's from now on. */
  readonly leave: (connection: DirectConnection) => void;
  /** The client has ended in the middle of a request, which Node calls a `clientError`. */
  readonly cutOff: (connection: DirectConnection) => void;
  readonly onFault: (error: unknown) => void;
}

export class DirectConnection implements DirectOwner {
  readonly socket: Socket;
  /** When it began to wait for what `awaited` says, by `performance.now()`. */
  sinceMs = performance.now();

  readonly #parts: DirectParts;
  readonly #parser: MessageParser;
  /** What has come of a request whose body is still coming. */
  #begun: Buffer | undefined;
  #head: DirectHead | undefined;
  #route: DirectRoute | undefined;
  #request: DirectRequest | undefined;
  /** The last response is in the socket; the client has not taken it. */
  #isFlushing = false;
  /** No request has come yet. */
  #isFresh = true;
  #hasEnded = false;
  #isOver = false;

  constructor(socket: Socket, parts: DirectParts) {
    this.socket = socket;
    this.#parts = parts;
    this.#parser = new MessageParser("request", parts.headBytesMax);
    socket.on("data", this.#onData).on("end", this.#onEnd).on("error", ignore);
  }

  /** Not so while its last response is on the way. */
  get isIdle(): boolean {
    return this.#request === undefined && !this.#isFlushing && this.#begun === undefined && !this.#isOver;
  }

  /** The first request, the rest of one, another, or that the client takes a response; undefined while a request is answered. */
  get awaited(): "first" | "rest" | "request" | "reader" | undefined {
    if (this.#isFlushing) return "reader";
    if (this.#begun !== undefined) return "rest";
    if (!this.isIdle) return undefined;
    return this.#isFresh ? "first" : "request";
  }

  addressFor(forwardedFor: string | undefined): string {
    const address = this.socket.remoteAddress as string;
    return this.#parts.addressBehindProxies?.(address, forwardedFor) ?? address;
  }

  get keepAliveLines(): string | undefined {
    return this.#parts.isStopping() || this.#hasEnded ? undefined : this.#parts.keepAliveLines;
  }

  /** The socket has closed. */
  closed(): void {
    this.#end();
    this.#request?.over();
    this.#request = undefined;
  }

  /** Leaves the connection to Node, before or after a request, or in the middle of one that is still coming. */
  leave(bytes = this.#begun): void {
    const { socket } = this;
    this.#end();
    socket.pause();
    if (bytes !== undefined) socket.unshift(bytes);
    this.#parts.leave(this);
    socket.resume();
  }

  answer(text: string, encoding: "latin1" | "utf8", isLast: boolean): void {
    const { socket } = this;
    this.#request = undefined;
    if (this.#isOver) return;
    const isTaken = socket.write(text, encoding);
    this.sinceMs = performance.now();
    if (isLast) {
      this.#end();
      this.#isFlushing = true;
      socket.on("error", ignore).destroySoon();
    } else if (isTaken) this.#goOn();
    else {
      this.#isFlushing = true;
      socket.once("drain", this.#onDrain);
    }
  }

  readonly #onDrain = (): void => {
    this.#isFlushing = false;
    this.sinceMs = performance.now();
    this.#goOn();
  };

  #goOn(): void {
    if (this.#hasEnded) this.socket.end();
    else if (this.socket.isPaused()) this.socket.resume();
  }

  /** Nothing more is read here. */
  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#begun = undefined;
    this.#parser.free();
    this.socket.off("data", this.#onData).off("end", this.#onEnd).off("error", ignore).off("drain", this.#onDrain);
  }

  readonly #onEnd = (): void => {
    this.#hasEnded = true;
    if (this.#begun !== undefined) {
      this.#end();
      this.#parts.cutOff(this);
    } else if (this.isIdle) this.socket.end();
  };

  readonly #onData = (bytes: Buffer): void => {
    try {
      this.#read(bytes);
    } catch (error) {
      this.#parts.onFault(error);
      this.socket.destroy();
    }
  };

  #read(bytes: Buffer): void {
    let rest = bytes;
    while (rest.length > 0 && !this.#isOver) {
      if (this.#request !== undefined || this.#isFlushing) {
        this.socket.pause();
        this.socket.unshift(rest);
        return;
      }
      const message = this.#begun === undefined ? rest : Buffer.concat([this.#begun, rest]);
      const parsed = this.#parse(message, rest);
      if (parsed === undefined) return;
      rest = rest.subarray(parsed);
      const end = message.length - rest.length;
      this.#serve(message.subarray(end - (this.#head as DirectHead).bodyBytes, end));
    }
  }

  /** Parses `rest`, the last part of `message`. Returns how much of it the request takes; undefined when it is not whole, or not ours. */
  #parse(message: Buffer, rest: Buffer): number | undefined {
    const parser = this.#parser;
    if (this.#parts.isStopping()) {
      this.leave(message);
      return undefined;
    }
    const parsed = parser.execute(rest, 0);
    if (parser.isHeadNew) {
      parser.isHeadNew = false;
      this.#route = this.#parts.routes.get(parser.target);
      this.#head =
        this.#route && readDirectHead(parser, { trustsProxies: this.#parts.addressBehindProxies !== undefined });
    }
    const { phase } = parser;
    const isOurs = phase === "head" || (phase !== "failed" && this.#head !== undefined);
    if (isOurs && phase === "complete") return parsed;
    if (!isOurs || message.length > MESSAGE_BYTES_MAX) this.leave(message);
    else {
      if (this.#begun === undefined) this.sinceMs = performance.now();
      this.#begun = message;
    }
    return undefined;
  }

  #serve(body: Buffer): void {
    const { nextRequestId, onRequest } = this.#parts;
    const route = this.#route as DirectRoute;
    const { headers } = this.#head as DirectHead;
    this.#begun = undefined;
    this.#head = undefined;
    this.#isFresh = false;
    const request = new DirectRequest(this, { id: nextRequestId(), headers, body, route });
    this.#request = request;
    onRequest(request.startedMs);
    route.serve(request, request);
  }
}

/** Of a request that is not whole: its head, and a body of the most bytes that are served here. */
const MESSAGE_BYTES_MAX = 2 * DIRECT_BYTES_BOUND;

const ignore = (): void => undefined;
