import type { IncomingHttpHeaders, ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { guardEmits, type OnFault } from "../http1/guard.ts";
import type { ServedConnection } from "../http1/server-connection.ts";
import type { ServerExchange } from "../http1/server-exchange.ts";
import { Allowance } from "./allowance.ts";
import { type Http2Head, readHttp2Head } from "./read-head.ts";
import { Http2Exchange, type Http2Owner } from "./server-exchange.ts";

/*
 * A client's connection of HTTP/2: a session of `node:http2`, whose nghttp2 is the only judge of frames and of what RFC 9113 calls
 * malformed. What a client may do often is counted here:
 *
 *   open ──idle for too long, the pod ends──► going away (GOAWAY): streams finish, none begins ──► closed
 *     └──resets, pings or settings without end──► told to calm down (GOAWAY), and closed at once
 *
 * `node:http2` is asked for with the first such connection, because most pods never have one. (Node loads it with an `import` of `node:http`
 * too, so today it is there anyway.)
 */

export interface Http2Handlers {
  readonly request: (exchange: ServerExchange) => void;
  /** The request is none that HTTP/1.1 could carry. The handler answers it. */
  readonly malformed: (
    fault: { readonly kind: "malformed" | "overflow"; readonly reason: string },
    exchange: ServerExchange,
  ) => void;
  readonly isClosing: () => boolean;
  /** A frame of a body has come. */
  readonly onFrame: (socket: Socket) => void;
  readonly onFault: OnFault;
}

export interface Http2Limits {
  readonly headBytesMax: number;
  readonly requestHeadMs: number;
  readonly keepAliveMs: number;
  /** For a client to take the end of a response. */
  readonly answerIdleMs: number;
}

/**
 * Concurrent requests of a connection; clients with more open another connection. The least that RFC 9113 (section 6.5.2) recommends,
 * because all requests of a connection may arrive in one read, and delay those of other clients.
 */
const STREAMS_MAX = 100;
/** Beyond it, nghttp2 itself resets a stream; those between are answered by `head.ts`, as for HTTP/1.1. */
const HEADER_PAIRS_MAX = 512;
/** What HPACK counts for a field besides its name and value. */
const HPACK_FIELD_BYTES = 32;
/** Requests that are reset before their answer (CVE-2023-44487). One that gets its answer makes up for one that is reset. */
const RESETS = { burst: 500, perSecond: 50 };
/** PING and SETTINGS: libraries measure with them, so a burst is normal. */
const CONTROL_FRAMES = { burst: 1_000, perSecond: 100 };
const KEEP_ALIVE_PROBE_MS = 30_000;
// RFC 9113, 7.
const NO_ERROR = 0;
const INTERNAL_ERROR = 2;
const ENHANCE_YOUR_CALM = 11;
/** Of a stream's flags: the head was all of the request. */
const END_STREAM = 1;

export class Http2Connection implements ServedConnection, Http2Owner {
  readonly socket: Socket;
  readonly onFrame: () => void;
  readonly onFault: OnFault;
  readonly #session: Session;
  readonly #handlers: Http2Handlers;
  readonly #limits: Http2Limits;
  readonly #resets: Allowance;
  readonly #controls: Allowance;
  #streams = 0;
  /** Those whose streams are open because their clients have not taken all of the response, or not sent all of the request. */
  readonly #answered = new Set<Http2Exchange>();
  #hasAsked = false;
  #isGoing = false;
  /** When it became idle. */
  #sinceMs = performance.now();

  /** `early`: what has been read of the connection, from its first byte on. */
  constructor(socket: Socket, early: Buffer, limits: Http2Limits, handlers: Http2Handlers) {
    this.socket = socket;
    this.onFrame = () => handlers.onFrame(socket);
    this.onFault = handlers.onFault;
    this.#limits = limits;
    this.#handlers = handlers;
    this.#resets = new Allowance(RESETS, this.#sinceMs);
    this.#controls = new Allowance(CONTROL_FRAMES, this.#sinceMs);
    // Its streams may be silent for long: a peer that vanished is found by this.
    socket.setKeepAlive(true, KEEP_ALIVE_PROBE_MS);
    socket.pause();
    socket.unshift(early);
    const session = performServerHandshake(socket, limits.headBytesMax);
    this.#session = session;
    guardEmits(session, ({ error }) => {
      handlers.onFault(error);
      session.destroy();
    });
    session.on("stream", (stream, _headers, flags, fields) => this.#begin(stream, flags, fields));
    session.on("ping", () => this.#control());
    session.on("remoteSettings", () => this.#control());
    // What breaks a session is the client's fault, and ends with it.
    session.on("error", () => undefined);
    // The client has ended its direction: it gets its answers, and begins nothing more.
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

  /** No stream begins any more; it closes when none is open. */
  closeIdle(): void {
    this.goAway();
  }

  goAway(): void {
    if (this.#isGoing || this.#session.destroyed) return;
    this.#isGoing = true;
    this.#session.close();
  }

  /** It is told to go away, and not waited for. */
  makeRoom(): void {
    // Once told, it may leave its connection open.
    if (this.#isGoing) this.socket.destroy();
    else {
      this.#isGoing = true;
      this.#session.destroy(NO_ERROR);
    }
  }

  look(nowMs: number): void {
    if (this.#session.destroyed) return;
    const { requestHeadMs, keepAliveMs, answerIdleMs } = this.#limits;
    for (const exchange of this.#answered) if (nowMs - exchange.answeredMs > answerIdleMs) exchange.breakOff();
    if (this.#streams > 0) return;
    const waitMs = this.#hasAsked ? keepAliveMs : requestHeadMs;
    if (nowMs - this.#sinceMs <= waitMs) return;
    // It was told, and is still there.
    if (this.#isGoing) this.#session.destroy();
    else this.goAway();
  }

  /** It is not read from for a while. Node begins again by itself after a write, so this is called again with what comes then. */
  hold(): void {
    handleOf(this.socket)?.readStop();
  }

  letGo(): void {
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
    this.#hasAsked = true;
    this.#streams += 1;
    guardEmits(stream, ({ error }) => {
      handlers.onFault(error);
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

/** Tells a client that there is no room for its connection, and that none of its requests was looked at, and closes it. No session is made. */
export function refuseHttp2(socket: Socket): void {
  socket.on("error", () => undefined);
  socket.end(NO_ROOM);
  socket.destroySoon();
}

/** An empty SETTINGS, and GOAWAY with the last stream 0 and the code ENHANCE_YOUR_CALM (RFC 9113, 6.5 and 6.8). */
const NO_ROOM = Buffer.from([
  ...[0, 0, 0, 4, 0, 0, 0, 0, 0],
  ...[0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ENHANCE_YOUR_CALM],
]);

const NO_HEAD: Http2Head = { method: "", target: "", headers: [], isUpgrade: false, madeKey: undefined };

/** What the session reads from. `pause` of the socket has no effect on it, and a session has none. */
const handleOf = (socket: Socket): { readStop(): void; readStart(): void } | null =>
  (socket as unknown as { _handle: { readStop(): void; readStart(): void } | null })._handle;

/** The types of Node do not have it yet, nor the fields of a head as the fourth argument. */
interface Handshake {
  readonly performServerHandshake: (socket: Socket, options: object) => Session;
}

interface Session extends Omit<ServerHttp2Session, "on" | "destroy"> {
  /** With a number, GOAWAY has it as its code. */
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
      // Somewhat more than is let through, so that the gate can answer.
      maxHeaderListSize: 2 * headBytesMax + HEADER_PAIRS_MAX * HPACK_FIELD_BYTES,
      enablePush: false,
      // WebSockets, RFC 8441.
      enableConnectProtocol: true,
    },
    maxHeaderListPairs: HEADER_PAIRS_MAX,
    // An app may send a field twice that should be there once, as over HTTP/1.1.
    strictSingleValueFields: false,
    // Those above are stricter, and know which requests got their answers.
    ...{ streamResetBurst: 10_000, streamResetRate: 1_000 },
  });
}
