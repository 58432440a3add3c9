import type { Socket } from "node:net";
import type { LimitedConnection } from "./connection-limiter.ts";
import type { OnInternalError } from "./guard.ts";
import { MessageParser, type ParseError } from "./message-parser.ts";
import { type BodyReceiver, type ExchangeOwner, Http1Exchange, type ReceivedHead } from "./server-exchange.ts";

/*
 * A client's connection. Requests are parsed one at a time, each after the response to the previous request is complete, as RFC 9112
 * (9.3.2) allows. Pipelined data is buffered up to a bound, at which reading is paused.
 *
 *   idle ──first bytes──► head ──► exchange ──response, body──► idle
 *     │                     │          │ response before the end of the body: draining ──► idle
 *     ▼ timeout             ▼ malformed, too slow               ▼ `Connection: close`, too much to drain
 *   closed                rejected ──► ending: input is read and discarded, so that the client can read the response
 */

/** A connection that the server manages. */
export interface ServedConnection extends LimitedConnection {
  readonly socket: Socket;
  /** Closes the connection as soon as it has no request in flight. */
  closeIdle(): void;
  /** Closes the connection if it has timed out. Called periodically. */
  look(nowMs: number): void;
  /** Called when the socket has closed. */
  closed(): void;
}

export interface ConnectionHandlers {
  readonly request: (exchange: Http1Exchange) => void;
  /**
   * Called when the request of `exchange` is malformed, or when no request could be parsed. The handler responds and ends the connection.
   */
  readonly malformed: (
    fault: ParseError | "late",
    connection: ServerConnection,
    exchange: Http1Exchange | undefined,
  ) => void;
  /** Returns whether the connection closes after the response that is beginning. */
  readonly isClosing: () => boolean;
  /**
   * Called when a connection begins with the HTTP/2 preface, which transfers the socket to the handler. `early` contains all bytes read so
   * far.
   */
  readonly preface: (connection: ServerConnection, early: Buffer) => void;
  /** Called when the socket no longer carries HTTP/1.1: after an upgrade, or before `preface` is called. */
  readonly detached: (connection: ServerConnection) => void;
  /** Called when the connection starts or stops waiting for the rest of a head. Not called for a head that arrives in one read. */
  readonly midHeadChanged: (connection: ServerConnection) => void;
  /** Called with the number of chunks when a body is discarded. */
  readonly onDiscarded: (socket: Socket, chunks: number) => void;
}

export interface ConnectionLimits {
  readonly headBytesMax: number;
  readonly requestHeadMs: number;
  readonly keepAliveMs: number;
  /** `Keep-Alive` header lines that advertise `keepAliveMs`. */
  readonly keepAliveLines: string;
  /** Maximum bytes of a request body that are read and discarded after the response. */
  readonly drainBytesMax: number;
  /** Maximum time for a client to read the last bytes of a response. The server parses the next request only after they are read. */
  readonly responseReadMs: number;
}

const HELD_BYTES_MAX = 64 * 1024;
const DRAIN_IDLE_MS = 10_000;
const DRAIN_MS = 60_000;
/** Maximum number of discarded body chunks. A limit on bytes is not enough, because each chunk costs time to parse, even if it is small. */
const DRAIN_CHUNKS_MAX = 10_000;
const LINGER_MS = 5_000;
const LINGER_BYTES_MAX = 64 * 1024 * 1024;

export class ServerConnection implements ServedConnection, ExchangeOwner, BodyReceiver {
  readonly socket: Socket;
  readonly #handlers: ConnectionHandlers;
  readonly #limits: ConnectionLimits;
  readonly #onInternalError: OnInternalError;
  readonly #parser: MessageParser;
  #exchange: Http1Exchange | undefined;
  /** Bytes received after the current request. */
  #held: Buffer | undefined;
  /** Whether reading is paused because `#held` is full. */
  #isHoldingBack = false;
  #isParsing = false;
  /** Whether the client has half-closed the connection. */
  #hasEnded = false;
  /** Whether parsing has stopped because the connection is about to close. */
  #isEnding = false;
  #isDetached = false;
  /** Whether no request has arrived yet. */
  #isFresh = true;
  /**
   * Start of the current wait: for the rest of a head, for the next request, for the end of a discarded body, or for the client to read a
   * response.
   */
  #sinceMs = performance.now();
  #isFlushing = false;
  #isDraining = false;
  #drainingSinceMs = 0;
  #drainedBytes = 0;
  #drainedChunks = 0;
  #lingeredBytes = 0;
  /**
   * Deadline of an ending connection, as `performance.now()`. The server then closes the socket, because the client may neither read nor
   * close.
   */
  #closeByMs = Number.POSITIVE_INFINITY;

  constructor(
    socket: Socket,
    limits: ConnectionLimits,
    handlers: ConnectionHandlers,
    onInternalError: OnInternalError,
  ) {
    this.socket = socket;
    this.#onInternalError = onInternalError;
    this.#limits = limits;
    this.#handlers = handlers;
    this.#parser = new MessageParser("request", limits.headBytesMax);
    socket.on("data", this.#onData);
    socket.on("end", this.#onEnd);
    socket.on("error", ignore);
  }

  /** Whether the connection has no request in flight, and no byte of the next one has arrived. */
  get isIdle(): boolean {
    const isWaiting = this.#exchange === undefined && this.#held === undefined && !this.#isFlushing;
    return isWaiting && !this.#parser.isMidHead && !this.#isEnding;
  }

  /**
   * A connection that waits for the rest of a head or drains a body counts as idle. A connection with a response that its client has not
   * read does not.
   */
  get idleSinceMs(): number | undefined {
    if (this.#isEnding) return this.socket.writableLength === 0 ? this.#sinceMs : undefined;
    if (this.#isDraining) return this.#drainingSinceMs;
    const isWaiting = this.#exchange === undefined && this.#held === undefined && !this.#isFlushing;
    return isWaiting ? this.#sinceMs : undefined;
  }

  evict(): void {
    this.socket.destroy();
  }

  /** Whether a request head has been partially received. */
  get isMidHead(): boolean {
    return this.#parser.isMidHead && !this.#isEnding;
  }

  get keepAliveLines(): string {
    return this.#limits.keepAliveLines;
  }

  get isClosing(): boolean {
    return this.#handlers.isClosing();
  }

  closeIdle(): void {
    if (this.isIdle) this.socket.destroy();
  }

  /** Called when the socket has closed. */
  closed(): void {
    this.#isEnding = true;
    this.#exchange?.closed();
    this.#exchange = undefined;
    this.#held = undefined;
    this.#parser.free();
  }

  /** Detaches the socket from HTTP, for an upgrade of the current request. Returns the bytes after the head. */
  detach(): Buffer {
    const held = this.#held ?? NOTHING;
    this.#held = undefined;
    this.#isDetached = true;
    this.#isEnding = true;
    this.#exchange = undefined;
    this.socket.off("data", this.#onData).off("end", this.#onEnd);
    this.#handlers.detached(this);
    return held;
  }

  /** Half-closes the connection, and discards input for a limited time until the client closes too. */
  endReading(): void {
    if (this.#isEnding || this.#isDetached) return;
    this.#isEnding = true;
    this.#exchange = undefined;
    this.#held = undefined;
    this.#parser.takeHeaders();
    this.#sinceMs = performance.now();
    this.#closeByMs = this.#sinceMs + (this.#hasEnded ? this.#limits.responseReadMs : LINGER_MS);
    this.socket.end();
    if (!this.#hasEnded) this.socket.resume();
  }

  look(nowMs: number): void {
    if (this.#isEnding) {
      if (nowMs > this.#closeByMs) this.socket.destroy();
      return;
    }
    const { requestHeadMs, keepAliveMs, responseReadMs } = this.#limits;
    const waitedMs = nowMs - this.#sinceMs;
    if (this.#isFlushing) {
      if (waitedMs > responseReadMs) this.socket.destroy();
    } else if (this.#isDraining) {
      if (waitedMs > DRAIN_IDLE_MS || nowMs - this.#drainingSinceMs > DRAIN_MS) this.socket.destroy();
    } else if (this.#exchange === undefined) {
      if (this.#parser.isMidHead) {
        if (waitedMs > requestHeadMs) this.#handlers.malformed("late", this, undefined);
      } else if (waitedMs > (this.socket.bytesRead === 0 ? requestHeadMs : keepAliveMs)) this.socket.destroy();
    }
  }

  readonly #onData = (bytes: Buffer): void => {
    if (this.#isEnding) {
      this.#lingeredBytes += bytes.length;
      if (this.#lingeredBytes > LINGER_BYTES_MAX) this.socket.pause();
    } else if (this.#held !== undefined || this.#isFlushing || this.#exchange?.isComplete === true) this.#hold(bytes);
    else this.#parse(bytes);
  };

  readonly #onEnd = (): void => {
    this.#hasEnded = true;
    if (this.#held === undefined) this.#inputOver();
  };

  /** Called when all received bytes are parsed. */
  #inputOver(): void {
    if (this.#isEnding || this.#isFlushing) return;
    const exchange = this.#exchange;
    if (exchange === undefined) {
      if (this.#parser.isMidHead) this.#handlers.malformed(CUT_OFF, this, undefined);
      else this.socket.end();
    } else if (exchange.isComplete) exchange.onInputEnd?.();
    else if (this.#isDraining) this.socket.destroy();
    else this.#handlers.malformed(CUT_OFF, this, exchange);
  }

  #hold(bytes: Buffer): void {
    this.#held = this.#held === undefined ? bytes : Buffer.concat([this.#held, bytes]);
    if (this.#held.length <= HELD_BYTES_MAX) return;
    this.#isHoldingBack = true;
    this.socket.pause();
  }

  /** Parses the bytes that arrived before the previous response was complete. */
  readonly #parseHeld = (): void => {
    const held = this.#held;
    if (held === undefined || this.#isEnding) return;
    this.#held = undefined;
    try {
      this.#parse(held);
    } catch (error) {
      this.#onInternalError(error);
      this.socket.destroy();
      return;
    }
    if (!this.#isHoldingBack || (this.#held as Buffer | undefined) !== undefined || this.#isEnding) return;
    this.#isHoldingBack = false;
    if (this.#exchange?.isPaused !== true) this.socket.resume();
  };

  #parse(bytes: Buffer): void {
    const parser = this.#parser;
    this.#isParsing = true;
    let at = 0;
    while (at < bytes.length && !this.#isEnding) {
      if (this.#isFlushing || this.#exchange?.isComplete === true) {
        this.#hold(at === 0 ? bytes : bytes.subarray(at));
        break;
      }
      const wasMidHead = parser.isMidHead;
      at = parser.execute(bytes, at);
      if (parser.isMidHead !== wasMidHead) this.#handlers.midHeadChanged(this);
      if (parser.phase === "failed") {
        if (parser.fault?.kind === "http2" && this.#isFresh) {
          this.detach();
          this.#handlers.preface(this, Buffer.concat([PREFACE, bytes.subarray(at)]));
          return;
        }
        this.#handlers.malformed(parser.fault as ParseError, this, this.#exchange);
        break;
      }
      if (parser.isHeadNew) this.#begin();
      else if (this.#exchange !== undefined) this.#goOn(this.#exchange);
      else if (!wasMidHead) this.#sinceMs = performance.now();
    }
    this.#isParsing = false;
    if (this.#hasEnded && this.#held === undefined) this.#inputOver();
  }

  #begin(): void {
    const parser = this.#parser;
    parser.isHeadNew = false;
    this.#isFresh = false;
    const exchange = new Http1Exchange(this, headOf(parser));
    this.#exchange = exchange;
    this.#goOn(exchange);
    this.#handlers.request(exchange);
  }

  #goOn(exchange: Http1Exchange): void {
    const { body, chunks, phase } = this.#parser;
    const isLast = phase === "complete";
    if (body !== undefined) exchange.take(body, chunks, isLast);
    if (isLast && !this.#isEnding) exchange.complete();
    // Pauses the socket again, because another component may have resumed it.
    if (exchange.isPaused) this.socket.pause();
  }

  flowChanged(exchange: Http1Exchange): void {
    if (exchange !== this.#exchange || this.#isDetached) return;
    if (exchange.isPaused) this.socket.pause();
    else this.socket.resume();
  }

  answered(exchange: Http1Exchange): void {
    if (exchange !== this.#exchange) return;
    const { socket } = this;
    if (!exchange.keepsAlive) {
      if (exchange.isComplete && !exchange.lingers && this.#held === undefined) {
        this.#isEnding = true;
        this.#exchange = undefined;
        this.#sinceMs = performance.now();
        this.#closeByMs = this.#sinceMs + this.#limits.responseReadMs;
        socket.destroySoon();
      } else this.endReading();
      return;
    }
    this.#sinceMs = performance.now();
    if (!exchange.isComplete) {
      this.#isDraining = true;
      this.#drainingSinceMs = this.#sinceMs;
      this.#drainedBytes = 0;
      this.#drainedChunks = 0;
      exchange.read(this);
      return;
    }
    this.#nextWhenTaken();
  }

  /** Discards a chunk of a request body that arrives after the response. */
  onChunk(bytes: Buffer, chunks: number): void {
    this.#sinceMs = performance.now();
    this.#drainedBytes += bytes.length;
    this.#drainedChunks += chunks;
    this.#handlers.onDiscarded(this.socket, chunks);
    if (this.#drainedBytes > this.#limits.drainBytesMax || this.#drainedChunks > DRAIN_CHUNKS_MAX) this.endReading();
  }

  onEnd(): void {
    this.#isDraining = false;
    if (!this.#isEnding) this.#nextWhenTaken();
  }

  /**
   * Waits while the client has left more response bytes unread than the socket's buffer holds, because responses would otherwise
   * accumulate.
   */
  #nextWhenTaken(): void {
    const { socket } = this;
    if (!socket.writableNeedDrain) {
      this.#next();
      return;
    }
    this.#isFlushing = true;
    this.#exchange = undefined;
    this.#sinceMs = performance.now();
    socket.once("drain", () => {
      this.#isFlushing = false;
      this.#next();
    });
  }

  #next(): void {
    if (this.#isEnding) return;
    this.#exchange = undefined;
    this.#sinceMs = performance.now();
    // Parses the next request on the next tick, because recursion would overflow the stack if thousands of responses complete
    // synchronously.
    if (this.#held !== undefined) process.nextTick(this.#parseHeld);
    else if (this.#hasEnded && !this.#isParsing) this.#inputOver();
  }
}

function headOf(parser: MessageParser): ReceivedHead {
  const { version } = parser;
  return {
    method: parser.method,
    target: parser.target,
    version: version === 11 ? "1.1" : version === 10 ? "1.0" : "other",
    headers: parser.takeHeaders(),
    isUpgrade: parser.isUpgrade,
    keepsAlive: parser.keepsAlive,
  };
}

const CUT_OFF: ParseError = { kind: "malformed", reason: "The connection ended in the middle of it" };
const NOTHING = Buffer.alloc(0);
const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
const ignore = (): void => undefined;
