import type { Socket } from "node:net";
import { performance } from "node:perf_hooks";
import { MessageParser } from "../../http/http1/message-parser.ts";
import { DIRECT_BYTES_BOUND, type DirectHead, readDirectHead } from "./direct-head.ts";
import { type DirectOwner, DirectRequest, type DirectRoute } from "./direct-request.ts";

/*
 * A connection as long as its requests are simple calls of hot procedures. Requests are processed one at a time.
 *
 *   waiting ──complete simple request──► responding ──response sent and read by the client──► waiting
 *      │ │  ▲ complete                       └── client half-closed, or last response ──► closed
 *      │ └──┴─► buffering ──too slow──┐
 *      └── any other request ─────────┴──► handed to Node, permanently, with all bytes of the request
 *
 * Bytes that arrive during a response stay in the socket, which is paused. So for a client that sends requests without reading, the server
 * buffers at most Node's read-ahead (two reads of 64 KiB), and responses up to the socket's limit of 64 KiB, plus one. Node alone
 * handles requests that are malformed, large, slow, or of other procedures: it receives all their bytes.
 */

/** Returns the client address from that of the connection and `X-Forwarded-For`. */
export type AddressBehindProxies = (connection: string, forwardedFor: string | undefined) => string;

/** Dependencies shared by all connections. */
export interface DirectDeps {
  readonly routes: ReadonlyMap<string, DirectRoute>;
  /** `undefined` if no proxy is trusted: the client is the peer of the connection. */
  readonly addressBehindProxies: AddressBehindProxies | undefined;
  readonly nextRequestId: () => string;
  readonly headBytesMax: number;
  readonly keepAliveLines: string;
  /** Whether the server is stopping: further requests go to Node, and each response is the last of its connection. */
  readonly isStopping: () => boolean;
  /** Called for each request that is served, with `performance.now()`. */
  readonly onRequest: (nowMs: number) => void;
  /** Called when the connection is handed to Node. */
  readonly leave: (connection: DirectConnection) => void;
  /** Called when the client closed within a request, for which Node emits `clientError`. */
  readonly cutOff: (connection: DirectConnection) => void;
  readonly onInternalError: (error: unknown) => void;
}

export class DirectConnection implements DirectOwner {
  readonly socket: Socket;
  /** Start of the wait that `awaited` describes, by `performance.now()`. */
  sinceMs = performance.now();

  readonly #parts: DirectDeps;
  readonly #parser: MessageParser;
  /** Buffered bytes of a request whose body is incomplete. */
  #begun: Buffer | undefined;
  #head: DirectHead | undefined;
  #route: DirectRoute | undefined;
  #request: DirectRequest | undefined;
  /** The last response is in the socket; the client has not read it. */
  #isFlushing = false;
  /** Whether no request has arrived yet. */
  #isFresh = true;
  #hasEnded = false;
  #isOver = false;

  constructor(socket: Socket, deps: DirectDeps) {
    this.socket = socket;
    this.#parts = deps;
    this.#parser = new MessageParser("request", deps.headBytesMax);
    socket.on("data", this.#onData).on("end", this.#onEnd).on("error", ignore);
  }

  /** False while the last response is being sent. */
  get isIdle(): boolean {
    return this.#request === undefined && !this.#isFlushing && this.#begun === undefined && !this.#isOver;
  }

  /**
   * Reason for waiting: the first request, the rest of one, another request, or the client to read a response; `undefined` while a request
   * is processed.
   */
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

  /** Called when the socket has closed. */
  closed(): void {
    this.#end();
    this.#request?.over();
    this.#request = undefined;
  }

  /** Hands the connection to Node, before or after a request, or within one that is incomplete. */
  leave(bytes = this.#begun): void {
    const { socket } = this;
    this.#end();
    socket.pause();
    if (bytes !== undefined) socket.unshift(bytes);
    this.#parts.leave(this);
    socket.resume();
  }

  respond(text: string, encoding: "latin1" | "utf8", isLast: boolean): void {
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

  /** Stops reading here. */
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
      this.#parts.onInternalError(error);
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

  /**
   * Parses `rest`, the last part of `message`. Returns the length of the request; `undefined` if it is incomplete, or must be handed to
   * Node.
   */
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

/** Maximum bytes of an incomplete request: its head, and the largest body that is served here. */
const MESSAGE_BYTES_MAX = 2 * DIRECT_BYTES_BOUND;

const ignore = (): void => undefined;
