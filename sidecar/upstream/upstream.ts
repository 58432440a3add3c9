import type { Socket } from "node:net";
import { ConcurrencyLimiter, type Waiter } from "../../edge/concurrency-limiter.ts";
import { freeRead } from "../../http/http1/chunk-buffer.ts";
import { guardRun, type OnInternalError } from "../../http/http1/guard.ts";
import { startSweep } from "../../http/http1/sweep.ts";
import { type BodySink, type RequestBody, WAITING_BODY_BYTES_MAX } from "../http/request-body.ts";
import { AppConnection, type AppConnectionOptions, type AppExchange } from "./app-connection.ts";
import { AppWatch } from "./app-watch.ts";

/* Manages the pool of connections to the app and limits their concurrency. A request is sent once and never repeated. */

export interface UpstreamRequest {
  readonly method: string;
  /** Path and query, with the same bytes that were checked. */
  readonly target: string;
  /** Header lines, including a Host and the original Content-Length, without hop-by-hop headers. */
  readonly lines: string;
  /** Complete body, or a body that has begun to arrive: a request takes a slot only after the first bytes of its body. */
  readonly body: Buffer | RequestBody | undefined;
  /** Value of Content-Length; `undefined` if absent. */
  readonly bodyLength: number | undefined;
  /** Client address that the concurrency slot is attributed to. */
  readonly address: string;
}

/**
 * Reason why a request failed. `unreachable`: the connection failed, or broke before the head of the response. `timeout`: the response did
 * not arrive in time. `unusable`: the response cannot be forwarded. `busy`: no concurrency slot became free, and the request was not sent.
 * `aborted`: the gate aborted the request.
 */
export type UpstreamFailure = "unreachable" | "unusable" | "timeout" | "busy" | "aborted";

/**
 * Receives the response: any number of `onInterim`, one `onHead`, data with an `onReadEnd` after each read, and one `onEnd`. `onFailure`
 * may occur at any point and is then the last call.
 */
export interface ResponseReceiver {
  /** Called with an informational response (1xx), any number of times before the head. */
  onInterim(status: number, headers: readonly string[]): void;
  /** Called with the head of the response. `status` is any three-digit number; `headers` are alternating names and values, as received. */
  onHead(status: number, reason: string, headers: readonly string[]): void;
  /**
   * Called with data. The connection reuses the buffer after the call, so the receiver must copy data that it keeps. Returning false pauses
   * the response until `resume` is called.
   */
  onData(bytes: Buffer): boolean;
  /** Called when all data of one read has been passed to `onData`. */
  onReadEnd(): void;
  /** Called at the end of the response. `trailers` are alternating names and values, as received. */
  onEnd(trailers: readonly string[]): void;
  onFailure(failure: UpstreamFailure, error: Error): void;
}

export interface Sent {
  resume(): void;
  /** Aborts the request and closes its connection to the app. Has no effect after the end of the exchange. */
  abort(): void;
}

export interface Upstream {
  readonly origin: URL;
  send(request: UpstreamRequest, receiver: ResponseReceiver): Sent;
  /** Opens a separate connection for an upgrade. It takes no slot of this pool. */
  connectForUpgrade(): AppConnection;
  readonly limiter: ConcurrencyLimiter;
  readonly watch: AppWatch;
  /** Closes all connections, and aborts exchanges in flight without waiting for them. */
  close(): Promise<void>;
}

/**
 * Limits on requests that wait for a slot. A request beyond them gets 503 immediately instead of after `connectMs`, because waiting
 * requests take memory and can come from clients without a key.
 */
const WAITING = { max: 2_000, bytesMax: 16 * 1024 * 1024 };

/**
 * Returns the memory that a request takes while it waits for a slot: its head, the part of its body that was received, and the part that
 * may still arrive.
 */
export function waitingBytes({ target, lines, body, bodyLength }: UpstreamRequest): number {
  const head = target.length + lines.length;
  if (body === undefined) return head;
  if (Buffer.isBuffer(body)) return head + body.length;
  return head + Math.min(bodyLength ?? WAITING_BODY_BYTES_MAX, WAITING_BODY_BYTES_MAX);
}

/**
 * Time for which each connection carries only one request, after the app has sent unrequested bytes. On a reused connection, unrequested
 * bytes that arrive while a request is being written cannot be distinguished from its response.
 */
const UNREQUESTED_MS = 60_000;

/**
 * Maximum size of a response head. It exceeds the limit for a client's head, because an app may set many cookies and long security
 * policies.
 */
const RESPONSE_HEAD_BYTES_MAX = 64 * 1024;

export interface UpstreamOptions {
  /** Maximum time to connect to the app, and maximum time to wait for a concurrency slot. */
  readonly connectMs: number;
  /** Maximum time from the end of the request to the head of the app's response. */
  readonly headersMs: number;
  /**
   * Maximum time between two bytes of the app's response. Time during which the client is too slow to read does not count. While the
   * request is still arriving, the time also restarts when the app reads a part of the request.
   */
  readonly bodyIdleMs: number;
  /** Replaces `bodyIdleMs` for server-sent event streams, which may be idle for a long time. */
  readonly eventsIdleMs: number;
  readonly headBytesMax: number;
  readonly connectionsMax: number;
  /** Maximum share of the connections that one client address may use, between 0 and 1. */
  readonly addressShare: number;
  readonly onInternalError: OnInternalError;
  /** Called when the app has sent bytes without a request. */
  readonly onUnrequested: () => void;
}

/** Opens an upstream. `origin` is `http://host:port` or `https://host:port`. */
export function openUpstream(origin: string, options: UpstreamOptions): Upstream {
  return new PooledUpstream(new URL(origin), options);
}

/**
 * Sends at most `connectionsMax` concurrent requests to the app, each on its own connection of the pool. Further requests wait for a slot.
 */
class PooledUpstream implements Upstream {
  readonly origin: URL;
  readonly onInternalError: OnInternalError;
  readonly limiter: ConcurrencyLimiter;
  readonly watch: AppWatch;
  readonly #options: AppConnectionOptions;
  /** Stack of idle connections. The most recently used connection is reused first, so that surplus connections time out. */
  readonly #idle: AppConnection[] = [];
  readonly #connections = new Set<AppConnection>();
  /** Time from which connections may be reused again, as `performance.now()`. */
  #keepsFromMs = 0;
  readonly #timer: NodeJS.Timeout;

  constructor(origin: URL, options: UpstreamOptions) {
    const {
      connectMs,
      headersMs,
      bodyIdleMs,
      eventsIdleMs,
      headBytesMax,
      connectionsMax,
      addressShare,
      onInternalError,
    } = options;
    const { onUnrequested } = options;
    this.origin = origin;
    this.onInternalError = onInternalError;
    this.limiter = new ConcurrencyLimiter({
      max: connectionsMax,
      share: addressShare,
      waitMs: connectMs,
      waiting: WAITING,
    });
    this.watch = new AppWatch(origin, onInternalError);
    this.#options = {
      host: origin.hostname.replace(/^\[|\]$/g, ""),
      port: Number(origin.port || (origin.protocol === "https:" ? 443 : 80)),
      isTls: origin.protocol === "https:",
      connectMs,
      headersMs,
      bodyIdleMs,
      eventsIdleMs,
      headBytesMax: Math.max(headBytesMax, RESPONSE_HEAD_BYTES_MAX),
      watch: this.watch,
      onInternalError,
      onIdle: (connection) => {
        if (performance.now() < this.#keepsFromMs) connection.socket.destroy();
        else this.#idle.push(connection);
      },
      onClosed: (connection) => void this.#connections.delete(connection),
      onUnrequested: () => {
        this.#keepsFromMs = performance.now() + UNREQUESTED_MS;
        for (const { socket } of this.#idle.splice(0)) socket.destroy();
        onUnrequested();
      },
    };
    const shortest = Math.min(headersMs, bodyIdleMs, eventsIdleMs);
    this.#timer = startSweep(this.#look, shortest);
  }

  send(request: UpstreamRequest, receiver: ResponseReceiver): Sent {
    const sent = new PoolRequest(this, request, receiver);
    this.limiter.acquire(sent);
    return sent;
  }

  take(): AppConnection {
    for (;;) {
      const connection = this.#idle.pop();
      if (connection === undefined) return this.#open(this.#options);
      if (connection.isUsable && performance.now() < connection.idleUntilMs) return connection;
      connection.socket.destroy();
    }
  }

  connectForUpgrade(): AppConnection {
    return this.#open({ ...this.#options, isHalfOpen: true, onIdle: (connection) => connection.socket.destroy() });
  }

  async close(): Promise<void> {
    this.limiter.close();
    this.watch.close();
    clearInterval(this.#timer);
    for (const { socket } of this.#connections) socket.destroy();
  }

  #open(options: AppConnectionOptions): AppConnection {
    const connection = new AppConnection(options);
    this.#connections.add(connection);
    return connection;
  }

  readonly #look = (): void => {
    const nowMs = performance.now();
    for (const connection of this.#connections) guardRun(() => connection.look(nowMs), this.onInternalError);
  };
}

class PoolRequest implements Sent, Waiter, AppExchange, BodySink {
  readonly address: string;
  readonly #upstream: PooledUpstream;
  readonly #receiver: ResponseReceiver;
  readonly #request: UpstreamRequest;
  #connection: AppConnection | undefined;
  #isOver = false;

  constructor(upstream: PooledUpstream, request: UpstreamRequest, receiver: ResponseReceiver) {
    this.#upstream = upstream;
    this.#request = request;
    this.#receiver = receiver;
    this.address = request.address;
  }

  get bytes(): number {
    return waitingBytes(this.#request);
  }

  onAcquired(): void {
    const { method, target, lines, body, bodyLength } = this.#request;
    const connection = this.#upstream.take();
    this.#connection = connection;
    const head = `${method} ${target} HTTP/1.1\r\n${lines}connection: keep-alive\r\n`;
    const isHead = method === "HEAD";
    if (body === undefined || Buffer.isBuffer(body)) {
      const length = body === undefined || bodyLength !== undefined ? "" : `content-length: ${body.length}\r\n`;
      connection.begin(this, `${head}${length}\r\n`, body, isHead);
      return;
    }
    const coding = bodyLength === undefined ? "transfer-encoding: chunked\r\n" : "";
    connection.beginStream(this, `${head}${coding}\r\n`, isHead);
    body.flowTo(this);
  }

  onTimeout(): void {
    this.#isOver = true;
    this.#fail("busy", new Error("no place at the app became free"));
  }

  resume(): void {
    this.#connection?.resume();
  }

  abort(): void {
    if (this.#isOver) return;
    const error = new Error("given up");
    if (this.#upstream.limiter.cancel(this)) this.#isOver = true;
    else {
      this.#release();
      this.#connection?.abort();
    }
    this.#fail("aborted", error);
  }

  write(bytes: Buffer): boolean {
    const socket = this.#connection?.socket;
    if (socket === undefined || this.#isOver) return true;
    const onWritten = () => freeRead(bytes);
    if (this.#request.bodyLength !== undefined) return socket.write(bytes, onWritten);
    socket.cork();
    socket.write(`${bytes.length.toString(16)}\r\n`, "latin1");
    socket.write(bytes, onWritten);
    const hasCapacity = socket.write("\r\n", "latin1");
    socket.uncork();
    return hasCapacity;
  }

  end(): void {
    const connection = this.#connection;
    if (connection === undefined || this.#isOver) return;
    if (this.#request.bodyLength === undefined) connection.socket.write("0\r\n\r\n", "latin1");
    connection.requestSent();
  }

  onDrain(): void {
    const { body } = this.#request;
    if (body !== undefined && !Buffer.isBuffer(body)) body.want();
  }

  onInterim(status: number, headers: readonly string[]): void {
    this.#guard(() => this.#receiver.onInterim(status, headers));
  }

  onHead(status: number, reason: string, headers: readonly string[]): void {
    this.#guard(() => this.#receiver.onHead(status, reason, headers));
  }

  onData(bytes: Buffer): boolean {
    let goesOn = true;
    this.#guard(() => {
      goesOn = this.#receiver.onData(bytes);
    });
    return goesOn;
  }

  onReadEnd(): void {
    this.#guard(() => this.#receiver.onReadEnd());
  }

  onComplete(trailers: readonly string[]): void {
    this.#release();
    this.#guard(() => this.#receiver.onEnd(trailers));
  }

  onUpgrade(_headers: readonly string[], _reason: string, socket: Socket): void {
    socket.destroy();
    this.onBroken("unusable", new Error("it switches protocols without being asked to"));
  }

  onBroken(failure: UpstreamFailure, error: Error): void {
    if (this.#isOver) return;
    this.#release();
    this.#fail(failure, error);
  }

  #fail(failure: UpstreamFailure, error: Error): void {
    this.#guard(() => this.#receiver.onFailure(failure, error));
  }

  /** Calls the receiver. An exception from the receiver is an internal error of the gate, and ends this exchange. */
  #guard(receive: () => void): void {
    try {
      receive();
    } catch (error) {
      this.#upstream.onInternalError(error);
      this.abort();
    }
  }

  #release(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#upstream.limiter.release(this.address);
  }
}
