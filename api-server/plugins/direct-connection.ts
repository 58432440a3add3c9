import type { Socket } from "node:net";
import { performance } from "node:perf_hooks";
import { MessageParser } from "../../http/http1/message-parser.ts";
import { DIRECT_BYTES_BOUND, type DirectHead, mayAlternate, readDirectHead } from "./direct-head.ts";
import { type DirectOwner, DirectRequest, type DirectRoute } from "./direct-request.ts";
import { NodeStream } from "./node-stream.ts";

/*
 * A connection of the api-server. Requests are processed one at a time.
 *
 *   waiting ──complete simple request──► responding ──response sent and read by the client──► waiting
 *      │ │  ▲ complete                       └── client half-closed, or last response ──► closed
 *      │ └──┴─► buffering ──too slow or large──┐
 *      ├── another well-formed request ────────┴──► at Node ──its response sent──► waiting
 *      └── malformed, or the last request ──► handed to Node, permanently, with all bytes of the request
 *
 * "At Node" means that Node handles one request: a `NodeStream` passes only the bytes of this request to Node. If the request turns out to
 * be malformed, or the client half-closes, Node keeps the connection.
 *
 * Bytes that arrive during a response stay in the socket, which is paused. So for a client that sends requests without reading, the server
 * buffers at most Node's read-ahead (two reads of 64 KiB), and responses up to the socket's limit of 64 KiB, plus one.
 */

/** Returns the client address, given the address of the connection and `X-Forwarded-For`. */
export type AddressBehindProxies = (connection: string, forwardedFor: string | undefined) => string;

/** Dependencies shared by all connections. */
export interface DirectDeps {
  readonly routes: ReadonlyMap<string, DirectRoute>;
  /**
   * Returns the address of a client behind trusted proxies; `undefined` if no proxy is trusted. The client is then the connection's peer.
   */
  readonly addressBehindProxies: AddressBehindProxies | undefined;
  readonly nextRequestId: () => string;
  readonly headBytesMax: number;
  readonly keepAliveLines: string;
  /** Whether the server is stopping. If so, further requests are handed to Node, and each connection closes after its current response. */
  readonly isStopping: () => boolean;
  /** Called for each request that is served, with the current `performance.now()`. */
  readonly onRequest: (nowMs: number) => void;
  /** Makes Node serve the requests that arrive on `stream`. */
  readonly serveByNode: (stream: NodeStream, connection: DirectConnection) => void;
  /** Called when the connection is handed to Node permanently. */
  readonly leave: (connection: DirectConnection) => void;
  /** Called when the client closed the connection in the middle of a request. Node's own server would emit `clientError` in this case. */
  readonly cutOff: (connection: DirectConnection) => void;
  readonly onInternalError: (error: unknown) => void;
}

export class DirectConnection implements DirectOwner {
  readonly socket: Socket;
  /** Time at which the wait for `awaited` began, as `performance.now()`. */
  sinceMs = performance.now();

  readonly #parts: DirectDeps;
  readonly #parser: MessageParser;
  /** Buffered bytes of a request with an incomplete body. */
  #begun: Buffer | undefined;
  #head: DirectHead | undefined;
  #route: DirectRoute | undefined;
  #request: DirectRequest | undefined;
  #stream: NodeStream | undefined;
  /**
   * Node's part in the current request: `rest` means that it receives the rest of the request, `response` that it sends the response,
   * `everything` that it receives all further bytes; `undefined` if Node is not involved.
   */
  #atNode: "rest" | "response" | "everything" | undefined;
  /** Whether Node has sent the response to the current request. */
  #hasResponded = false;
  /** Whether the last response has been written to the socket but not yet been completely read by the client. */
  #isFlushing = false;
  /** Whether no request has arrived yet. */
  #isFresh = true;
  #hasEnded = false;
  #isOver = false;

  constructor(socket: Socket, deps: DirectDeps) {
    this.socket = socket;
    this.#parts = deps;
    this.#parser = new MessageParser("request", deps.headBytesMax);
    socket.on("data", this.#onData).on("end", this.#onEnd).on("timeout", this.#onTimeout).on("error", ignore);
  }

  /** Whether no request or response is in progress; false while the last response is being sent. */
  get isIdle(): boolean {
    return (
      this.#request === undefined &&
      !this.#isFlushing &&
      this.#begun === undefined &&
      this.#atNode === undefined &&
      !this.#isOver
    );
  }

  /** The stream that passes the current request to Node; `undefined` if Node does not serve it. */
  get streamAtNode(): NodeStream | undefined {
    return this.#atNode === undefined ? undefined : this.#stream;
  }

  /**
   * What the connection waits for: the first request, the rest of a request, another request, or `reader`, which means that the client must
   * read a response. `undefined` while the direct front or Node processes a request.
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
    this.#stream?.destroy();
  }

  /** Passes the buffered part of a request to Node. The rest is passed on as it arrives. */
  passToNode(): void {
    if (this.#begun !== undefined) this.#pass(this.#begun);
  }

  /** Called when Node has sent a response on the stream. */
  nodeResponded(): void {
    this.#hasResponded = true;
    if (this.#atNode === "response") this.#takeBack();
  }

  /** Hands the connection to Node permanently. This is possible between requests, and in the middle of an incomplete request. */
  #leave(bytes: Buffer): void {
    const { socket } = this;
    this.#end();
    this.#stream?.destroy();
    socket.pause();
    socket.unshift(bytes);
    this.#parts.leave(this);
    socket.resume();
  }

  /** Passes the first bytes of a request to Node. */
  #pass(bytes: Buffer): void {
    this.#begun = undefined;
    this.#head = undefined;
    this.#isFresh = false;
    this.#hasResponded = false;
    this.#atNode = this.#parser.phase === "complete" ? "response" : "rest";
    if (this.#stream === undefined) {
      this.#stream = new NodeStream(this.socket, this.#onStreamDestroyed);
      this.#parts.serveByNode(this.#stream, this);
    }
    this.#stream.receive(bytes);
  }

  /** Passes further bytes to Node. Returns the number of bytes that belonged to the request. */
  #passRest(bytes: Buffer): number {
    const parser = this.#parser;
    let passed = bytes.length;
    if (this.#atNode === "rest") {
      const parsed = parser.execute(bytes, 0);
      if (parser.phase === "failed" || (parser.isHeadNew && !mayAlternate(parser))) this.#atNode = "everything";
      else if (parser.phase === "complete") {
        this.#atNode = "response";
        passed = parsed;
      }
      parser.isHeadNew = false;
    }
    this.#stream?.receive(bytes.subarray(0, passed));
    if (this.#atNode === "response" && this.#hasResponded) this.#takeBack();
    return passed;
  }

  #takeBack(): void {
    this.#atNode = undefined;
    this.socket.setTimeout(0);
    this.sinceMs = performance.now();
    this.#goOn();
  }

  readonly #onStreamDestroyed = (): void => {
    this.#stream = undefined;
    if (this.#atNode !== undefined) this.socket.destroy();
  };

  readonly #onTimeout = (): void => {
    this.streamAtNode?.emit("timeout");
  };

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

  /** Stops reading from the socket. */
  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#begun = undefined;
    this.#parser.free();
    this.socket.off("data", this.#onData).off("end", this.#onEnd).off("timeout", this.#onTimeout);
    this.socket.off("error", ignore).off("drain", this.#onDrain);
  }

  readonly #onEnd = (): void => {
    this.#hasEnded = true;
    if (this.#atNode !== undefined) {
      this.#atNode = "everything";
      this.#stream?.push(null);
    } else if (this.#begun !== undefined) {
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
      if (this.#request !== undefined || this.#isFlushing || this.#atNode === "response") {
        this.socket.pause();
        this.socket.unshift(rest);
        return;
      }
      if (this.#atNode !== undefined) {
        rest = rest.subarray(this.#passRest(rest));
        continue;
      }
      const message = this.#begun === undefined ? rest : Buffer.concat([this.#begun, rest]);
      const parsed = this.#parse(message, rest);
      if (parsed === undefined) return;
      const end = message.length - rest.length + parsed;
      rest = parsed === rest.length ? NOTHING : rest.subarray(parsed);
      const { body } = this.#parser;
      if (this.#head === undefined) this.#pass(message.subarray(0, end));
      else if (body?.length === this.#head.bodyBytes) this.#serve(this.#head, body);
      else this.#serve(this.#head, message.subarray(end - this.#head.bodyBytes, end));
    }
  }

  /**
   * Parses `rest`, the last part of `message`. Returns the length of the request; `undefined` if the request is incomplete or must be
   * handed to Node.
   */
  #parse(message: Buffer, rest: Buffer): number | undefined {
    const parser = this.#parser;
    if (this.#parts.isStopping()) {
      this.#leave(message);
      return undefined;
    }
    const parsed = parser.execute(rest, 0);
    if (parser.isHeadNew) {
      parser.isHeadNew = false;
      if (this.#route?.url !== parser.target) this.#route = this.#parts.routes.get(parser.target);
      this.#head =
        this.#route && readDirectHead(parser, { trustsProxies: this.#parts.addressBehindProxies !== undefined });
      if (this.#head === undefined && !mayAlternate(parser)) {
        this.#leave(message);
        return undefined;
      }
    }
    const { phase } = parser;
    if (phase === "complete") return parsed;
    if (phase === "failed") this.#leave(message);
    else if (phase === "body" && (this.#head === undefined || message.length > MESSAGE_BYTES_MAX)) this.#pass(message);
    else {
      if (this.#begun === undefined) this.sinceMs = performance.now();
      this.#begun = message;
    }
    return undefined;
  }

  #serve({ headers }: DirectHead, body: Buffer): void {
    const { nextRequestId, onRequest } = this.#parts;
    const route = this.#route as DirectRoute;
    this.#begun = undefined;
    this.#head = undefined;
    this.#isFresh = false;
    const request = new DirectRequest(this, { id: nextRequestId(), headers, body, route });
    this.#request = request;
    onRequest(request.startedMs);
    route.serve(request, request);
  }
}

/** Maximum size of an incomplete request: its head, and the largest body that the direct front accepts. */
const MESSAGE_BYTES_MAX = 2 * DIRECT_BYTES_BOUND;

const NOTHING = Buffer.alloc(0);
const ignore = (): void => undefined;
