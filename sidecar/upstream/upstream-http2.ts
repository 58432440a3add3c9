import type { ClientHttp2Session, ClientHttp2Stream } from "node:http2";
import type { ConcurrencyLimiter, Waiter } from "../../edge/concurrency-limiter.ts";
import { guardEmits, guardRun } from "../../http/http1/guard.ts";
import { startSweep } from "../../http/http1/sweep.ts";
import { pushLines } from "../../http/http2/lines.ts";
import { type InputReceiver, StreamInput } from "../../http/http2/stream-input.ts";
import { isGrpc } from "../http/grpc-problem.ts";
import { headerIn } from "../http/header-in.ts";
import type { BodySink } from "../http/request-body.ts";
import { type AppConnection, isEventStream } from "./app-connection.ts";
import type { AppWatch } from "./app-watch.ts";
import {
  type ResponseReceiver,
  type Sent,
  type Upstream,
  type UpstreamFailure,
  type UpstreamOptions,
  type UpstreamRequest,
  waitingBytes,
} from "./upstream.ts";

/*
 * Connects to an app that uses HTTP/2 without TLS (h2c), as gRPC apps do: each request is a stream of a session, with the same concurrency
 * limit as for HTTP/1.1 connections. Upgrades still use HTTP/1.1. After a GOAWAY from the app, a session completes its streams, and the
 * next request opens another session. A request is sent once and never repeated.
 *
 *   waiting for a slot ──► requested ──head──► responding ──end──► over
 *                              └── reset, timeout, session lost: failed ──┘
 */

/** Maximum number of streams per session. More requests open further sessions, and an app may announce a lower limit. */
const STREAMS_MAX = 100;
const SESSION_IDLE_MS = 60_000;
const HEADER_PAIRS_MAX = 1_024;
const HEAD_BYTES_MAX = 96 * 1024;
/** Maximum memory for data that waits to be sent on one session, in MB. */
const SESSION_MEMORY_MAX = 64;
// Error code (RFC 9113, section 7).
const CANCEL = 8;

type Options = Pick<UpstreamOptions, "connectMs" | "headersMs" | "bodyIdleMs" | "eventsIdleMs" | "onInternalError">;

/** Pseudo-header and header fields in the form that `node:http2` accepts. */
type Fields = string[];

interface Session {
  readonly http2: ClientHttp2Session;
  streams: number;
}

/** Options of `node:http2` that its types do not declare yet. */
interface Http2Module {
  connect(origin: string, options: object): ClientHttp2Session;
}

/**
 * Returns an upstream over HTTP/2. `pool` provides the concurrency slots, the watch and the connections for upgrades, and is closed
 * together with the returned upstream.
 */
export function overHttp2(pool: Upstream, options: Options): Upstream {
  return new Http2Upstream(pool, options);
}

class Http2Upstream implements Upstream {
  readonly origin: URL;
  readonly limiter: ConcurrencyLimiter;
  readonly watch: AppWatch;
  readonly options: Options;
  readonly requests = new Set<StreamRequest>();
  readonly #pool: Upstream;
  readonly #sessions = new Set<Session>();
  readonly #http2 = process.getBuiltinModule("node:http2") as unknown as Http2Module;
  readonly #timer: NodeJS.Timeout;

  constructor(pool: Upstream, options: Options) {
    this.#pool = pool;
    this.origin = pool.origin;
    this.limiter = pool.limiter;
    this.watch = pool.watch;
    this.options = options;
    const shortest = Math.min(options.headersMs, options.bodyIdleMs, options.eventsIdleMs);
    this.#timer = startSweep(this.#look, shortest);
  }

  send(request: UpstreamRequest, receiver: ResponseReceiver): Sent {
    const sent = new StreamRequest(this, request, receiver);
    this.limiter.acquire(sent);
    return sent;
  }

  connectForUpgrade(): AppConnection {
    return this.#pool.connectForUpgrade();
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#pool.close();
    for (const { http2 } of this.#sessions) http2.destroy();
  }

  /** Opens a stream. Throws if the head cannot be sent. */
  open(fields: Fields, isComplete: boolean): ClientHttp2Stream {
    const session = this.#free() ?? this.#connect();
    const stream = session.http2.request(fields, { endStream: isComplete });
    session.streams += 1;
    stream.once("close", () => {
      session.streams -= 1;
    });
    return stream;
  }

  #free(): Session | undefined {
    for (const session of this.#sessions) {
      const { http2, streams } = session;
      if (http2.closed || http2.destroyed) continue;
      const theirs = http2.connecting ? STREAMS_MAX : (http2.remoteSettings.maxConcurrentStreams ?? STREAMS_MAX);
      if (streams < Math.min(STREAMS_MAX, theirs)) return session;
    }
    return undefined;
  }

  #connect(): Session {
    const { connectMs, onInternalError } = this.options;
    const http2 = this.#http2.connect(this.origin.origin, {
      settings: { enablePush: false, maxHeaderListSize: HEAD_BYTES_MAX },
      maxHeaderListPairs: HEADER_PAIRS_MAX,
      maxSessionMemory: SESSION_MEMORY_MAX,
      strictSingleValueFields: false,
    });
    const session = { http2, streams: 0 };
    this.#sessions.add(session);
    guardEmits(http2, ({ error }) => {
      onInternalError(error);
      http2.destroy();
    });
    let isConnected = false;
    const late = setTimeout(() => http2.destroy(new Error("the app took no connection in time")), connectMs);
    http2.once("connect", () => {
      isConnected = true;
      clearTimeout(late);
      this.watch.connected();
    });
    // The streams of the session fail together with the session.
    http2.on("error", (error) => {
      if (!isConnected) this.watch.failed(error);
    });
    http2.once("close", () => {
      clearTimeout(late);
      this.#sessions.delete(session);
    });
    http2.setTimeout(SESSION_IDLE_MS, () => {
      if (session.streams === 0) http2.close();
    });
    return session;
  }

  readonly #look = (): void => {
    const nowMs = performance.now();
    for (const request of this.requests) guardRun(() => request.look(nowMs), this.options.onInternalError);
  };
}

class StreamRequest implements Sent, Waiter, BodySink, InputReceiver {
  readonly address: string;
  readonly #upstream: Http2Upstream;
  readonly #receiver: ResponseReceiver;
  readonly #request: UpstreamRequest;
  #stream: ClientHttp2Stream | undefined;
  #input: StreamInput | undefined;
  #isOver = false;
  #isRequestSent = false;
  #isHeadReceived = false;
  #isPaused = false;
  /** Maximum idle time of the current response. */
  #bodyIdleMs = 0;
  #trailers: readonly string[] = NO_TRAILERS;
  /** Time at which the app stopped reading the buffered request body, as `performance.now()`; `Infinity` while the app reads. */
  #stuckMs = Number.POSITIVE_INFINITY;
  /** Time at which the current wait times out, as `performance.now()`. */
  #deadlineMs = Number.POSITIVE_INFINITY;

  constructor(upstream: Http2Upstream, request: UpstreamRequest, receiver: ResponseReceiver) {
    this.#upstream = upstream;
    this.#request = request;
    this.#receiver = receiver;
    this.address = request.address;
  }

  onAcquired(): void {
    const { body } = this.#request;
    this.#upstream.requests.add(this);
    try {
      this.#stream = this.#follow(this.#upstream.open(this.#fields(), body === undefined));
    } catch (error) {
      this.#break("unreachable", error instanceof Error ? error : new Error(String(error)));
      return;
    }
    if (body === undefined || Buffer.isBuffer(body)) {
      if (body !== undefined) this.#stream.end(body);
      this.#requestSent();
    } else body.flowTo(this);
  }

  get bytes(): number {
    return waitingBytes(this.#request);
  }

  onTimeout(): void {
    this.#isOver = true;
    this.#guard(() => this.#receiver.onFailure("busy", new Error("no place at the app became free")));
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#deadlineMs = performance.now() + this.#bodyIdleMs;
    this.#input?.resume();
  }

  abort(): void {
    if (this.#isOver) return;
    if (this.#upstream.limiter.cancel(this)) {
      this.#isOver = true;
      this.#guard(() => this.#receiver.onFailure("aborted", new Error("given up")));
    } else this.#break("aborted", new Error("given up"));
  }

  write(bytes: Buffer): boolean {
    const stream = this.#stream;
    if (stream === undefined || this.#isOver || stream.destroyed || stream.writableEnded) return true;
    const isTaken = stream.write(bytes);
    if (!isTaken) this.#stuckMs = performance.now();
    return isTaken;
  }

  end(): void {
    if (this.#isOver || this.#stream === undefined) return;
    if (!this.#stream.writableEnded) this.#stream.end();
    this.#requestSent();
  }

  look(nowMs: number): void {
    if (this.#isRequestSent) {
      if (!this.#isPaused && nowMs > this.#deadlineMs)
        this.#break("timeout", new Error("the app did not answer in time"));
    } else if (this.#isStuck(nowMs)) {
      this.#break("timeout", new Error("the app neither read its request nor answered in time"));
    }
  }

  /** Returns whether the app has stopped reading the request for too long, by the same rule as in app-connection.ts. */
  #isStuck(nowMs: number): boolean {
    const stuckMs = nowMs - this.#stuckMs;
    if (!this.#isHeadReceived) return stuckMs > this.#upstream.options.headersMs;
    return !this.#isPaused && nowMs > this.#deadlineMs && stuckMs > this.#bodyIdleMs;
  }

  #requestSent(): void {
    this.#isRequestSent = true;
    const atMs = performance.now() + this.#upstream.options.headersMs;
    // Renews the deadline: the app may have begun its response long ago and be waiting for the rest of the request.
    this.#deadlineMs = this.#isHeadReceived ? Math.max(this.#deadlineMs, atMs) : atMs;
  }

  #fields(): Fields {
    const { method, target, lines, body, bodyLength } = this.#request;
    const { origin } = this.#upstream;
    const sent: string[] = [];
    pushLines(sent, lines);
    let authority = origin.host;
    const fields: string[] = [];
    for (let at = 0; at < sent.length; at += 2) {
      const name = sent[at] as string;
      if (name === "host") authority = sent[at + 1] as string;
      else fields.push(name, sent[at + 1] as string);
    }
    if (Buffer.isBuffer(body) && bodyLength === undefined) fields.push("content-length", String(body.length));
    const pseudo = [
      ":method",
      method,
      ":path",
      target,
      ":scheme",
      origin.protocol.slice(0, -1),
      ":authority",
      authority,
    ];
    // The gate forwards trailers, and gRPC apps require `te: trailers`.
    return [...pseudo, ...fields, "te", "trailers"];
  }

  #follow(stream: ClientHttp2Stream): ClientHttp2Stream {
    guardEmits(stream, ({ error }) => {
      this.#upstream.options.onInternalError(error);
      this.abort();
    });
    // Some versions of Node's types do not declare the fourth argument, the raw head.
    const on = stream.on.bind(stream) as (event: string, listener: (...args: never[]) => void) => unknown;
    on("headers", (head: Record<string, unknown>, _flags: number, fields: string[]) => {
      if (!this.#isOver) this.#guard(() => this.#receiver.onInterim(Number(head[":status"]), withoutPseudo(fields)));
    });
    on("response", (head: Record<string, unknown>, _flags: number, fields: string[]) =>
      this.#onHead(Number(head[":status"]), withoutPseudo(fields)),
    );
    on("trailers", (_head: unknown, _flags: number, fields: string[]) => {
      this.#trailers = fields;
    });
    this.#input = new StreamInput(stream, this, this.#upstream.options);
    this.#input.resume();
    stream.on("drain", () => {
      this.#stuckMs = Number.POSITIVE_INFINITY;
      const { body } = this.#request;
      if (body !== undefined && !Buffer.isBuffer(body)) body.want();
    });
    stream.on("error", (error) => this.#break("unreachable", error));
    stream.once("close", () => {
      // The response may be complete even if its data is still queued or unread.
      if (this.#input?.isComplete !== true) this.#break("unreachable", new Error("the app reset the stream"));
    });
    return stream;
  }

  #onHead(status: number, headers: readonly string[]): void {
    if (this.#isOver) return;
    this.#isHeadReceived = true;
    const isCall = isGrpc(headerIn(headers, "content-type"));
    const { bodyIdleMs, eventsIdleMs } = this.#upstream.options;
    this.#bodyIdleMs = isCall || isEventStream(headers) ? eventsIdleMs : bodyIdleMs;
    this.#deadlineMs = performance.now() + this.#bodyIdleMs;
    // A Content-Length would end the response before its trailers, which carry the status of a gRPC call.
    const passed = isCall ? withoutLength(headers) : headers;
    this.#guard(() => this.#receiver.onHead(status, "", passed));
    // Data that arrives in the same read is sent together with the head.
    setImmediate(() => {
      if (!this.#isOver) this.#guard(() => this.#receiver.onReadEnd());
    });
  }

  onChunk(bytes: Buffer, _frames: number, isLast: boolean): void {
    if (this.#isOver) return;
    this.#deadlineMs = performance.now() + this.#bodyIdleMs;
    this.#guard(() => {
      if (!this.#receiver.onData(bytes)) {
        this.#isPaused = true;
        this.#input?.pause();
      }
      if (!isLast) this.#receiver.onReadEnd();
    });
  }

  onEnd(): void {
    const stream = this.#stream;
    if (this.#isOver || stream === undefined) return;
    if (!this.#isHeadReceived) {
      this.#break("unreachable", new Error("the app ended the stream without an answer"));
      return;
    }
    this.#release();
    // Resets the stream, because the app has responded before the request was sent completely.
    if (!this.#isRequestSent) stream.close(CANCEL);
    this.#guard(() => this.#receiver.onEnd(this.#trailers));
  }

  #break(failure: UpstreamFailure, error: Error): void {
    if (this.#isOver) return;
    this.#release();
    const stream = this.#stream;
    if (stream !== undefined && !stream.destroyed) stream.close(CANCEL);
    this.#guard(() => this.#receiver.onFailure(failure, error));
  }

  /** Calls the receiver. An exception from the receiver is an internal error of the gate, and ends this exchange. */
  #guard(receive: () => void): void {
    try {
      receive();
    } catch (error) {
      this.#upstream.options.onInternalError(error);
      this.abort();
    }
  }

  #release(): void {
    this.#isOver = true;
    this.#input?.stop();
    this.#upstream.requests.delete(this);
    this.#upstream.limiter.release(this.address);
  }
}

const NO_TRAILERS: readonly string[] = [];
const COLON = 0x3a;

function withoutPseudo(fields: readonly string[]): string[] {
  const kept: string[] = [];
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] as string;
    if (name.charCodeAt(0) !== COLON) kept.push(name, fields[at + 1] as string);
  }
  return kept;
}

function withoutLength(headers: readonly string[]): string[] {
  const kept: string[] = [];
  for (let at = 0; at < headers.length; at += 2) {
    if (headers[at] !== "content-length") kept.push(headers[at] as string, headers[at + 1] as string);
  }
  return kept;
}
