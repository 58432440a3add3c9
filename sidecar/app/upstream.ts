import type { Socket } from "node:net";
import { type PlaceSeeker, Places } from "../../edge/places.ts";
import { guardRun, type OnFault } from "../../http1/guard.ts";
import { lookRegularly } from "../../http1/look.ts";
import { type BodySink, type RequestBody, WAITING_BODY_BYTES_MAX } from "../http/request-body.ts";
import { AppConnection, type AppConnectionOptions, type AppExchange } from "./app-connection.ts";
import { AppWatch } from "./app-watch.ts";

/*
 * The way to the app: a pool of connections, and who may use one. A request is sent once and never repeated.
 */

export interface UpstreamRequest {
  readonly method: string;
  /** Path and query, in the bytes that were checked. */
  readonly target: string;
  /** Whole lines. Content-Length unchanged, no hop-by-hop headers, and a Host. */
  readonly lines: string;
  /** A whole body, or one that has begun to arrive, because a request takes a place even while its body does not. */
  readonly body: Buffer | RequestBody | undefined;
  /** By Content-Length. */
  readonly bodyLength: number | undefined;
  /** The address for which places at the app are counted. */
  readonly address: string;
}

/**
 * `unreachable`: no connection, or it broke before the head of the response. `timeout`: no response in time.
 * `unusable`: there is a response, but it cannot be passed on. `busy`: no place at the app became free, and nothing was
 * sent. `aborted`: the gate gave up.
 */
export type UpstreamFailure = "unreachable" | "unusable" | "timeout" | "busy" | "aborted";

/** Receives the response: `onInterim`, one `onHead`, then data, with an `onReadEnd` after each read, then one `onEnd`; or at any point one `onFailure`, and nothing after it. */
export interface AnswerReceiver {
  /** An informational response (1xx). There may be any number before the head. */
  onInterim(status: number, headers: readonly string[]): void;
  /** `status` is any three-digit number; `headers` are names and values alternating, as they came. */
  onHead(status: number, reason: string, headers: readonly string[]): void;
  /** The bytes are others' when it returns: what is kept is copied. false: pause, until `resume` is called. */
  onData(bytes: Buffer): boolean;
  /** For now there is no more data. */
  onReadEnd(): void;
  /** `trailers` as `headers`. */
  onEnd(trailers: readonly string[]): void;
  onFailure(failure: UpstreamFailure, error: Error): void;
}

export interface Sent {
  resume(): void;
  /** Gives up: the connection to the app is closed. Does nothing when the exchange is over. */
  abort(): void;
}

export interface Upstream {
  readonly origin: URL;
  send(request: UpstreamRequest, receiver: AnswerReceiver): Sent;
  /** Opens a connection of its own, for an upgrade. It needs no place here. */
  connectForUpgrade(): AppConnection;
  readonly places: Places;
  /** Whether the app takes connections. */
  readonly watch: AppWatch;
  /** Does not wait: exchanges in flight are aborted. */
  close(): Promise<void>;
}

/**
 * What waits for a place at the app. Beyond it a request gets 503 at once, instead of after `connectMs`: what waits costs memory, and those who
 * make requests wait may need no key.
 */
const WAITING = { max: 2_000, bytesMax: 16 * 1024 * 1024 };

/** What a request keeps in memory while it waits for a place: its head, and of its body what has come and may still come. */
export function waitingBytes({ target, lines, body, bodyLength }: UpstreamRequest): number {
  const head = target.length + lines.length;
  if (body === undefined) return head;
  if (Buffer.isBuffer(body)) return head + body.length;
  return head + Math.min(bodyLength ?? WAITING_BODY_BYTES_MAX, WAITING_BODY_BYTES_MAX);
}

/**
 * How long connections are used for one request each after the app has sent bytes that no request asked for. On a kept connection, bytes that
 * arrive just when a request is written cannot be told from its response.
 */
const UNREQUESTED_MS = 60_000;

/** Larger than for a client's head: an app may set many cookies, and policies are long. */
const ANSWER_HEAD_BYTES_MAX = 64 * 1024;

export interface UpstreamOptions {
  /** To connect to the app; and to wait for a place at it. */
  readonly connectMs: number;
  /** From the end of the request to the head of the app's response. */
  readonly headersMs: number;
  /** Without a byte of the app's response while the client waits for it; while the request is still coming, also without taking a byte of that. */
  readonly bodyIdleMs: number;
  /** In place of `bodyIdleMs`, of server-sent events. */
  readonly eventsIdleMs: number;
  readonly headBytesMax: number;
  readonly connectionsMax: number;
  /** The part of the connections that one client address alone may hold. */
  readonly addressShare: number;
  readonly onFault: OnFault;
  /** The app sent bytes that no request asked for. */
  readonly onUnrequested: () => void;
}

/** `origin` is `http://host:port`, or with https. */
export function openUpstream(origin: string, options: UpstreamOptions): Upstream {
  return new PooledUpstream(new URL(origin), options);
}

/** The app has at most `connectionsMax` requests, each on a connection of the pool. The others wait for a place. */
class PooledUpstream implements Upstream {
  readonly origin: URL;
  readonly onFault: OnFault;
  readonly places: Places;
  readonly watch: AppWatch;
  readonly #options: AppConnectionOptions;
  /** The one used last is used next, so that those that are not needed end. */
  readonly #idle: AppConnection[] = [];
  readonly #connections = new Set<AppConnection>();
  /** `performance.now()` from which connections are kept for another request. */
  #keepsFromMs = 0;
  readonly #timer: NodeJS.Timeout;

  constructor(origin: URL, options: UpstreamOptions) {
    const { connectMs, headersMs, bodyIdleMs, eventsIdleMs, headBytesMax, connectionsMax, addressShare, onFault } =
      options;
    const { onUnrequested } = options;
    this.origin = origin;
    this.onFault = onFault;
    this.places = new Places({ max: connectionsMax, share: addressShare, waitMs: connectMs, waiting: WAITING });
    this.watch = new AppWatch(origin, onFault);
    this.#options = {
      host: origin.hostname.replace(/^\[|\]$/g, ""),
      port: Number(origin.port || (origin.protocol === "https:" ? 443 : 80)),
      isTls: origin.protocol === "https:",
      connectMs,
      headersMs,
      bodyIdleMs,
      eventsIdleMs,
      headBytesMax: Math.max(headBytesMax, ANSWER_HEAD_BYTES_MAX),
      watch: this.watch,
      onFault,
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
    this.#timer = lookRegularly(this.#look, shortest);
  }

  send(request: UpstreamRequest, receiver: AnswerReceiver): Sent {
    const sent = new PoolRequest(this, request, receiver);
    this.places.seek(sent);
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
    this.places.close();
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
    for (const connection of this.#connections) guardRun(() => connection.look(nowMs), this.onFault);
  };
}

class PoolRequest implements Sent, PlaceSeeker, AppExchange, BodySink {
  readonly address: string;
  readonly #upstream: PooledUpstream;
  readonly #receiver: AnswerReceiver;
  readonly #request: UpstreamRequest;
  #connection: AppConnection | undefined;
  #isOver = false;

  constructor(upstream: PooledUpstream, request: UpstreamRequest, receiver: AnswerReceiver) {
    this.#upstream = upstream;
    this.#request = request;
    this.#receiver = receiver;
    this.address = request.address;
  }

  get bytes(): number {
    return waitingBytes(this.#request);
  }

  onPlace(): void {
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

  onNoPlace(): void {
    this.#isOver = true;
    this.#fail("busy", new Error("no place at the app became free"));
  }

  resume(): void {
    this.#connection?.resume();
  }

  abort(): void {
    if (this.#isOver) return;
    const error = new Error("given up");
    if (this.#upstream.places.leave(this)) this.#isOver = true;
    else {
      this.#release();
      this.#connection?.abort();
    }
    this.#fail("aborted", error);
  }

  /** A part of the body. */
  write(bytes: Buffer): boolean {
    const socket = this.#connection?.socket;
    if (socket === undefined || this.#isOver) return true;
    if (this.#request.bodyLength !== undefined) return socket.write(bytes);
    socket.cork();
    socket.write(`${bytes.length.toString(16)}\r\n`, "latin1");
    socket.write(bytes);
    const hasRoom = socket.write("\r\n", "latin1");
    socket.uncork();
    return hasRoom;
  }

  /** The body is complete. */
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

  /** What the receiver throws is our own fault, not the app's: it ends this exchange. */
  #guard(receive: () => void): void {
    try {
      receive();
    } catch (error) {
      this.#upstream.onFault(error);
      this.abort();
    }
  }

  #release(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#upstream.places.release(this.address);
  }
}
