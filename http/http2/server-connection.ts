import type { IncomingHttpHeaders, ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { guardEmits, type OnInternalError } from "../http1/guard.ts";
import type { ServedConnection } from "../http1/server-connection.ts";
import type { ServerExchange } from "../http1/server-exchange.ts";
import { Allowance } from "./allowance.ts";
import { type Http2Head, readHttp2Head } from "./read-head.ts";
import { Http2Exchange, type Http2Owner } from "./server-exchange.ts";

/*
 * A client's HTTP/2 connection: a session of `node:http2`, in which nghttp2 validates frames and rejects requests that are malformed by
 * RFC 9113. This file limits the rate of operations that are cheap for a client:
 *
 *   open ──idle for too long, the pod terminates──► going away (GOAWAY): streams finish, none begins ──► closed
 *     └──too many resets, pings or settings──► GOAWAY with ENHANCE_YOUR_CALM, and closed immediately
 *
 * `node:http2` is loaded for the first HTTP/2 connection, because most pods never have one.
 */

export interface Http2Handlers {
  readonly request: (exchange: ServerExchange) => void;
  /** Called for a request that HTTP/1.1 cannot express. The handler responds. */
  readonly malformed: (
    fault: { readonly kind: "malformed" | "overflow"; readonly reason: string },
    exchange: ServerExchange,
  ) => void;
  readonly isClosing: () => boolean;
  /** Called for each DATA frame of a body. */
  readonly onFrame: (socket: Socket) => void;
  readonly onInternalError: OnInternalError;
}

export interface Http2Limits {
  readonly headBytesMax: number;
  readonly requestHeadMs: number;
  readonly keepAliveMs: number;
  /** Maximum time for a client to read the end of a response. */
  readonly responseReadMs: number;
}

/**
 * Maximum number of concurrent requests on a connection. A client that needs more opens another connection. RFC 9113, section 6.5.2,
 * recommends at least this number. A larger number would let one connection delay other clients, because all its requests may arrive in one
 * read.
 */
const STREAMS_MAX = 100;
/** Number of headers beyond which nghttp2 resets a stream. Up to this number, `head.ts` applies its own, lower limit, as for HTTP/1.1. */
const HEADER_PAIRS_MAX = 512;
/** Bytes that HPACK counts for a field in addition to its name and value. */
const HPACK_FIELD_BYTES = 32;
/**
 * Budget of streams that are reset before their response, against Rapid Reset (CVE-2023-44487). Each completed response increases it by
 * one.
 */
const RESETS = { burst: 500, perSecond: 50 };
/** Budget of PING and SETTINGS frames. Client libraries send PING frames to measure connections, so a burst is normal. */
const CONTROL_FRAMES = { burst: 1_000, perSecond: 100 };
const KEEP_ALIVE_PROBE_MS = 30_000;
// Error codes (RFC 9113, section 7).
const NO_ERROR = 0;
const INTERNAL_ERROR = 2;
const ENHANCE_YOUR_CALM = 11;
/** Flag of a stream whose head is the whole request. */
const END_STREAM = 1;

export class Http2Connection implements ServedConnection, Http2Owner {
  readonly socket: Socket;
  readonly onFrame: () => void;
  readonly onInternalError: OnInternalError;
  readonly #session: Session;
  readonly #handlers: Http2Handlers;
  readonly #limits: Http2Limits;
  readonly #resets: Allowance;
  readonly #controls: Allowance;
  #streams = 0;
  /**
   * Exchanges whose response is complete but whose stream is still open, because the client has not read all of the response or has not
   * sent all of the request.
   */
  readonly #answered = new Set<Http2Exchange>();
  #hasRequested = false;
  #isGoing = false;
  /** Time at which the connection became idle, as `performance.now()`. */
  #sinceMs = performance.now();

  /** Starts a session. `early` contains the bytes read from the connection so far. */
  constructor(socket: Socket, early: Buffer, limits: Http2Limits, handlers: Http2Handlers) {
    this.socket = socket;
    this.onFrame = () => handlers.onFrame(socket);
    this.onInternalError = handlers.onInternalError;
    this.#limits = limits;
    this.#handlers = handlers;
    this.#resets = new Allowance(RESETS, this.#sinceMs);
    this.#controls = new Allowance(CONTROL_FRAMES, this.#sinceMs);
    // Enables keepalive probes to detect a lost peer, because streams may be idle for a long time.
    socket.setKeepAlive(true, KEEP_ALIVE_PROBE_MS);
    socket.pause();
    socket.unshift(early);
    const session = performServerHandshake(socket, limits.headBytesMax);
    this.#session = session;
    guardEmits(session, ({ error }) => {
      handlers.onInternalError(error);
      session.destroy();
    });
    session.on("stream", (stream, _headers, flags, fields) => this.#begin(stream, flags, fields));
    session.on("ping", () => this.#control());
    session.on("remoteSettings", () => this.#control());
    // Ignores session errors, because clients can cause them. Each of them ends its session.
    session.on("error", () => undefined);
    // A client that half-closes the connection still receives its responses, but cannot begin new streams.
    socket.once("end", () => this.goAway());
  }

  get isIdle(): boolean {
    return this.#streams === 0;
  }

  get idleSinceMs(): number | undefined {
    return this.#streams === 0 ? this.#sinceMs : undefined;
  }

  get isClosing(): boolean {
    return this.#handlers.isClosing();
  }

  /** Rejects new streams; the session closes when its last stream closes. */
  closeIdle(): void {
    this.goAway();
  }

  goAway(): void {
    if (this.#isGoing || this.#session.destroyed) return;
    this.#isGoing = true;
    this.#session.close();
  }

  /** Sends GOAWAY and closes without waiting for open streams. */
  evict(): void {
    // Closes a connection that the client leaves open after GOAWAY.
    if (this.#isGoing) this.socket.destroy();
    else {
      this.#isGoing = true;
      this.#session.destroy(NO_ERROR);
    }
  }

  look(nowMs: number): void {
    if (this.#session.destroyed) return;
    const { requestHeadMs, keepAliveMs, responseReadMs } = this.#limits;
    for (const exchange of this.#answered) if (nowMs - exchange.answeredMs > responseReadMs) exchange.breakOff();
    if (this.#streams > 0) return;
    const waitMs = this.#hasRequested ? keepAliveMs : requestHeadMs;
    if (nowMs - this.#sinceMs <= waitMs) return;
    // Closes a session that the client leaves open after GOAWAY.
    if (this.#isGoing) this.#session.destroy();
    else this.goAway();
  }

  /** Pauses reading. Node resumes reading after each write, so the owner calls this again when further frames arrive. */
  pauseReads(): void {
    handleOf(this.socket)?.readStop();
  }

  resumeReads(): void {
    handleOf(this.socket)?.readStart();
  }

  closed(): void {
    if (!this.#session.destroyed) this.#session.destroy();
  }

  answered(exchange: Http2Exchange): void {
    this.#resets.giveBack();
    this.#answered.add(exchange);
  }

  upgraded(): void {
    this.#resets.giveBack();
  }

  reset(): void {
    if (!this.#resets.take(performance.now())) this.#calm();
  }

  #control(): void {
    if (!this.#controls.take(performance.now())) this.#calm();
  }

  #calm(): void {
    if (!this.#session.destroyed) this.#session.destroy(ENHANCE_YOUR_CALM);
  }

  #begin(stream: ServerHttp2Stream, flags: number, fields: readonly string[]): void {
    const { handlers, limits } = { handlers: this.#handlers, limits: this.#limits };
    this.#hasRequested = true;
    this.#streams += 1;
    guardEmits(stream, ({ error }) => {
      handlers.onInternalError(error);
      stream.close(INTERNAL_ERROR);
    });
    stream.on("error", () => undefined);
    const isComplete = (flags & END_STREAM) !== 0;
    const head = readHttp2Head(fields, !isComplete, limits.headBytesMax);
    const exchange = new Http2Exchange(this, stream, head.fault === undefined ? head : NO_HEAD, isComplete);
    stream.once("close", () => {
      this.#streams -= 1;
      this.#answered.delete(exchange);
      this.#sinceMs = performance.now();
    });
    if (head.fault === undefined) handlers.request(exchange);
    else handlers.malformed(head.fault, exchange);
  }
}

/**
 * Rejects a connection because of the connection limit, without creating a session: sends GOAWAY, which shows that no request was
 * processed, and closes the connection.
 */
export function refuseHttp2(socket: Socket): void {
  socket.on("error", () => undefined);
  socket.end(NO_ROOM);
  socket.destroySoon();
}

/** Bytes of an empty SETTINGS frame and a GOAWAY frame with last stream 0 and the code ENHANCE_YOUR_CALM (RFC 9113, 6.5 and 6.8). */
const NO_ROOM = Buffer.from([
  ...[0, 0, 0, 4, 0, 0, 0, 0, 0],
  ...[0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ENHANCE_YOUR_CALM],
]);

const NO_HEAD: Http2Head = { method: "", target: "", headers: [], isUpgrade: false, madeKey: undefined };

/** Returns the handle from which the session reads. A session has no `pause`, and the socket's `pause` does not affect the session. */
const handleOf = (socket: Socket): { readStop(): void; readStart(): void } | null =>
  (socket as unknown as { _handle: { readStop(): void; readStart(): void } | null })._handle;

/** Node's types declare neither this method nor the raw head as the fourth argument. */
interface Handshake {
  readonly performServerHandshake: (socket: Socket, options: object) => Session;
}

interface Session extends Omit<ServerHttp2Session, "on" | "destroy"> {
  /** Destroys the session. A number is sent as the error code of GOAWAY. */
  destroy(code?: number): void;
  on(
    event: "stream",
    listener: (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, flags: number, fields: string[]) => void,
  ): this;
  on(event: "ping" | "remoteSettings" | "error", listener: () => void): this;
}

function performServerHandshake(socket: Socket, headBytesMax: number): Session {
  const http2 = process.getBuiltinModule("node:http2") as unknown as Handshake;
  return http2.performServerHandshake(socket, {
    settings: {
      maxConcurrentStreams: STREAMS_MAX,
      // This limit exceeds the gate's own limit, so that the gate can respond to an oversized head itself.
      maxHeaderListSize: 2 * headBytesMax + HEADER_PAIRS_MAX * HPACK_FIELD_BYTES,
      enablePush: false,
      // Allows extended CONNECT for WebSockets (RFC 8441).
      enableConnectProtocol: true,
    },
    maxHeaderListPairs: HEADER_PAIRS_MAX,
    // Allows an app to send a single-value header field twice, as over HTTP/1.1.
    strictSingleValueFields: false,
    // Node's own limits are looser than `RESETS`. They also do not consider whether a reset request had received its response.
    ...{ streamResetBurst: 10_000, streamResetRate: 1_000 },
  });
}
