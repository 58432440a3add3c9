import { connect, isIP, type Socket } from "node:net";
import { type ConnectionOptions, connect as connectTls } from "node:tls";
import { guardSocket, type OnInternalError } from "../../http/http1/guard.ts";
import { MessageParser } from "../../http/http1/message-parser.ts";
import type { AppWatch } from "./app-watch.ts";

/*
 * A connection to the app, with one exchange at a time.
 *
 *   idle ──begin──► requested ──head──► responding ──complete──► idle, or closed: if the app requires it or the request is incomplete
 *                      │                 │
 *                      └── broken, timeout, unusable: the exchange fails, and the connection is closed ──┘
 */

/** Receives the events of an exchange on a connection. The last call is `onComplete`, `onUpgrade` or `onBroken`. */
export interface AppExchange {
  onInterim(status: number, headers: readonly string[]): void;
  onHead(status: number, reason: string, headers: readonly string[]): void;
  /**
   * Called with data. The connection reuses the buffer after the call, so the receiver must copy data that it keeps. Returning false pauses
   * the connection.
   */
  onData(bytes: Buffer): boolean;
  /** Called when all data of one read has been passed to `onData`. */
  onReadEnd(): void;
  onDrain(): void;
  onComplete(trailers: readonly string[]): void;
  /** Called with the head of a 101 response. Transfers the socket to the exchange, with the bytes after the head. */
  onUpgrade(headers: readonly string[], reason: string, socket: Socket, rest: Buffer): void;
  onBroken(failure: "unreachable" | "unusable" | "timeout", error: Error): void;
}

export interface AppConnectionOptions {
  readonly host: string;
  readonly port: number;
  /** Whether the connection uses TLS. An authority that Node trusts must have issued the app's certificate. */
  readonly isTls: boolean;
  readonly connectMs: number;
  readonly headersMs: number;
  readonly bodyIdleMs: number;
  /** Replaces `bodyIdleMs` for server-sent event streams, which may be idle for a long time. */
  readonly eventsIdleMs: number;
  readonly headBytesMax: number;
  /** Whether the gate may still send data after the app has half-closed the connection. Upgrades require this. */
  readonly isHalfOpen?: boolean;
  readonly watch: AppWatch;
  readonly onInternalError: OnInternalError;
  /** Called when the connection has no exchange and may be reused. */
  readonly onIdle: (connection: AppConnection) => void;
  readonly onClosed: (connection: AppConnection) => void;
  /** Called when the app has sent bytes without a request. The connection is then closed. */
  readonly onUnrequested: () => void;
}

/**
 * Maximum idle time of a connection. It is shorter than the 5 s after which Node's server closes idle connections by default, so that the
 * app does not close a connection on which the gate is just sending a request.
 */
const IDLE_MS = 4_000;
const IDLE_MS_MAX = 600_000;
/** Margin that is subtracted from the keep-alive timeout that the app announces. */
const IDLE_MARGIN_MS = 1_000;
const PROBE_MS = 60_000;

/**
 * Read buffer that all connections share, because the data of a read is parsed, forwarded or copied before the next read. Allocating a
 * buffer for each read would cost as much as parsing its data.
 */
const INPUT = Buffer.allocUnsafeSlow(64 * 1024);

export class AppConnection {
  readonly socket: Socket;
  /** Time until which the connection may be idle, as `performance.now()`. */
  idleUntilMs = 0;
  readonly #options: AppConnectionOptions;
  readonly #parser: MessageParser;
  #exchange: AppExchange | undefined;
  #isRequestSent = true;
  #isHeadReceived = false;
  #isConnected = false;
  /** Maximum idle time of the current response. */
  #bodyIdleMs = 0;
  #isPaused = false;
  /** Time at which the current wait times out, as `performance.now()`. */
  #deadlineMs = 0;
  #idleMs: number | undefined;
  /**
   * Number of request bytes that the app has read so far. `#takenMs` is the time at which this number was first observed, as
   * `performance.now()`.
   */
  #takenBytes = -1;
  #takenMs = 0;
  #connectTimer: NodeJS.Timeout | undefined;

  constructor(options: AppConnectionOptions) {
    const { connectMs, headBytesMax, watch, onInternalError, isTls, isHalfOpen } = options;
    this.#options = options;
    this.#parser = new MessageParser("response", headBytesMax);
    const socket = isTls ? openTls(options) : openPlain(options, this.#onRead);
    this.socket = socket;
    guardSocket(socket, onInternalError);
    this.#connectTimer = setTimeout(
      () => this.#break("timeout", new Error("the app took no connection in time")),
      connectMs,
    );
    socket.once(isTls ? "secureConnect" : "connect", () => {
      this.#isConnected = true;
      clearTimeout(this.#connectTimer);
      watch.connected();
    });
    if (isTls || isHalfOpen === true) socket.on("data", this.#onData);
    socket.on("end", this.#onEnd);
    socket.on("drain", () => this.#exchange?.onDrain());
    socket.on("error", (error) => {
      if (!this.#isConnected) watch.failed(error);
      this.#break("unreachable", error);
    });
    socket.once("close", () => {
      clearTimeout(this.#connectTimer);
      this.#break("unreachable", new Error("the app closed the connection"));
      this.#parser.free();
      options.onClosed(this);
    });
  }

  get isUsable(): boolean {
    return !this.socket.destroyed && this.socket.writable;
  }

  /**
   * Begins an exchange: sends the head of its request and, if `body` is defined, its complete body. `isHead` means that the response has no
   * body.
   */
  begin(exchange: AppExchange, head: string, body: Buffer | undefined, isHead: boolean): void {
    this.#exchange = exchange;
    this.#isHeadReceived = false;
    this.#takenBytes = -1;
    this.#parser.isBodyless = isHead;
    const { socket } = this;
    if (body === undefined || body.length === 0) socket.write(head, "latin1");
    else if (body.length <= JOINED_BYTES_MAX) socket.write(head + body.toString("latin1"), "latin1");
    else {
      socket.cork();
      socket.write(head, "latin1");
      socket.write(body);
      socket.uncork();
    }
    this.requestSent();
  }

  /** Begins an exchange. Its body follows in calls of `write` and ends with `requestSent`. */
  beginStream(exchange: AppExchange, head: string, isHead: boolean): void {
    this.begin(exchange, head, undefined, isHead);
    this.#isRequestSent = false;
  }

  /** Called when the complete request is sent. This starts the time that the app has to begin or continue its response. */
  requestSent(): void {
    this.#isRequestSent = true;
    this.#deadlineMs = performance.now() + (this.#isHeadReceived ? this.#bodyIdleMs : this.#options.headersMs);
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#deadlineMs = performance.now() + this.#bodyIdleMs;
    this.socket.resume();
  }

  /** Closes the connection without further calls to its exchange. */
  abort(): void {
    this.#exchange = undefined;
    this.socket.destroy();
  }

  /** Aborts an exchange that has timed out, or closes a connection that has been idle for too long. Called periodically. */
  look(nowMs: number): void {
    if (this.#exchange === undefined) {
      if (nowMs > this.idleUntilMs) this.socket.destroy();
    } else if (this.#isRequestSent) {
      if (this.#isConnected && !this.#isPaused && nowMs > this.#deadlineMs)
        this.#break("timeout", new Error("the app did not answer in time"));
    } else if (this.#isStuck(nowMs)) {
      this.#break("timeout", new Error("the app neither read its request nor answered in time"));
    }
  }

  /**
   * Returns whether the app has stopped reading the request, and has left data unread for longer than `headersMs` (before its response
   * begins) or the idle timeout of the response (afterwards).
   */
  #isStuck(nowMs: number): boolean {
    const { socket } = this;
    const takenBytes = socket.bytesWritten - socket.writableLength;
    if (!socket.writableNeedDrain || takenBytes !== this.#takenBytes) {
      this.#takenBytes = takenBytes;
      this.#takenMs = nowMs;
    }
    if (!this.#isHeadReceived) return nowMs - this.#takenMs > this.#options.headersMs;
    // A paused response does not show that the app is stuck. Some apps stop reading the request while the client does not read the
    // response.
    return !this.#isPaused && nowMs > this.#deadlineMs && nowMs - this.#takenMs > this.#bodyIdleMs;
  }

  readonly #onRead = (bytes: number): boolean => {
    try {
      this.#onData(INPUT.subarray(0, bytes));
    } catch (error) {
      this.#options.onInternalError(error);
      this.socket.destroy();
    }
    return !this.#isPaused;
  };

  readonly #onData = (bytes: Buffer): void => {
    const parser = this.#parser;
    for (let at = 0; at < bytes.length; ) {
      const exchange = this.#exchange;
      if (exchange === undefined) {
        this.#unrequested();
        return;
      }
      at = parser.execute(bytes, at);
      if (parser.phase === "failed") {
        this.#break("unusable", new Error(parser.fault?.reason || "the head is too long"));
        return;
      }
      if (parser.isHeadNew) {
        parser.isHeadNew = false;
        const { status, headers } = parser;
        if (status >= 100 && status < 200 && status !== 101) {
          exchange.onInterim(status, headers);
          continue;
        }
        if (status === 101 && parser.isUpgrade && this.#options.isHalfOpen === true) {
          this.#upgrade(exchange, bytes.subarray(at));
          return;
        }
        this.#isHeadReceived = true;
        this.#bodyIdleMs = isEventStream(headers) ? this.#options.eventsIdleMs : this.#options.bodyIdleMs;
        this.#idleMs ??= idleMsOf(headers);
        exchange.onHead(status, parser.reason, headers);
      }
      if (parser.body !== undefined && this.#exchange === exchange && !exchange.onData(parser.body)) {
        this.#isPaused = true;
        this.socket.pause();
      }
      if (this.#exchange === exchange && parser.phase === "complete") this.#complete(exchange, at < bytes.length);
    }
    if (!this.#isHeadReceived || this.#exchange === undefined) return;
    this.#deadlineMs = performance.now() + this.#bodyIdleMs;
    this.#exchange.onReadEnd();
  };

  readonly #onEnd = (): void => {
    const exchange = this.#exchange;
    if (exchange === undefined) {
      this.socket.destroy();
      return;
    }
    const isComplete = this.#isHeadReceived && this.#parser.finish();
    if (isComplete) this.#complete(exchange, false);
    else this.#break(this.#isHeadReceived ? "unusable" : "unreachable", new Error("the app ended the connection"));
    this.socket.destroy();
  };

  #upgrade(exchange: AppExchange, rest: Buffer): void {
    const { socket } = this;
    this.#exchange = undefined;
    socket.off("data", this.#onData).off("end", this.#onEnd);
    this.#options.onClosed(this);
    exchange.onUpgrade(this.#parser.headers, this.#parser.reason, socket, rest);
  }

  #unrequested(): void {
    this.socket.destroy();
    this.#options.onUnrequested();
  }

  /**
   * Completes the exchange. `hasSurplus` means that further bytes followed the response. They must not be taken as the response to the next
   * request.
   */
  #complete(exchange: AppExchange, hasSurplus: boolean): void {
    const { socket } = this;
    this.#exchange = undefined;
    if (hasSurplus) this.#unrequested();
    else if (this.#parser.keepsAlive && this.#isRequestSent && this.isUsable) {
      this.idleUntilMs = performance.now() + (this.#idleMs ?? IDLE_MS);
      if (this.#isPaused) socket.resume();
      this.#isPaused = false;
      this.#options.onIdle(this);
    } else socket.destroy();
    exchange.onComplete(this.#parser.trailers ?? NO_TRAILERS);
  }

  #break(failure: "unreachable" | "unusable" | "timeout", error: Error): void {
    const exchange = this.#exchange;
    this.#exchange = undefined;
    this.socket.destroy();
    exchange?.onBroken(failure, error);
  }
}

function openPlain({ host, port, isHalfOpen }: AppConnectionOptions, onRead: (bytes: number) => boolean): Socket {
  const kept = isHalfOpen === true ? { allowHalfOpen: true } : { onread: { buffer: INPUT, callback: onRead } };
  const options = { host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: PROBE_MS };
  return connect({ ...options, ...BUFFERED, ...kept });
}

function openTls({ host, port, isHalfOpen = false }: AppConnectionOptions): Socket {
  const options: ConnectionOptions & { allowHalfOpen: boolean } = {
    host,
    port,
    ALPNProtocols: ["http/1.1"],
    allowHalfOpen: isHalfOpen,
    ...BUFFERED,
    ...(isIP(host) === 0 ? { servername: host } : {}),
  };
  const socket = connectTls(options);
  return socket.setNoDelay(true).setKeepAlive(true, PROBE_MS);
}

/**
 * Number of unsent bytes at which reading of a request body pauses. It is small, so that reading pauses after the first read. With Node's
 * default of 64 KiB, a body that starts while the connection opens would be read a second time, which takes 16 MiB more for 256 such
 * bodies.
 */
const BUFFERED = { writableHighWaterMark: 16 * 1024 };
const JOINED_BYTES_MAX = 16 * 1024;
const NO_TRAILERS: readonly string[] = [];
const CONTENT_TYPE = "content-type";
const EVENT_STREAM = /^\s*text\/event-stream\b/i;
const TIMEOUT = /(?:^|[,\s])timeout=(\d{1,9})/i;

export function isEventStream(headers: readonly string[]): boolean {
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at] as string;
    if (name.length === CONTENT_TYPE.length && name.toLowerCase() === CONTENT_TYPE) {
      return EVENT_STREAM.test(headers[at + 1] as string);
    }
  }
  return false;
}

/** Returns the idle timeout that the app announces, less `IDLE_MARGIN_MS`. */
function idleMsOf(headers: readonly string[]): number {
  for (let at = 0; at < headers.length; at += 2) {
    if (headers[at]?.length !== 10 || headers[at]?.toLowerCase() !== "keep-alive") continue;
    const seconds = TIMEOUT.exec(headers[at + 1] as string)?.[1];
    if (seconds !== undefined) return Math.min(IDLE_MS_MAX, Number(seconds) * 1000 - IDLE_MARGIN_MS);
  }
  return IDLE_MS;
}
