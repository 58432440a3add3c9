import type { Socket } from "node:net";
import type { Guest } from "./connection-room.ts";
import type { OnFault } from "./guard.ts";
import { MessageParser, type ParseFault } from "./message-parser.ts";
import { type BodyReceiver, type ExchangeOwner, Http1Exchange, type ReceivedHead } from "./server-exchange.ts";

/*
 * A client's connection: its requests one after another, each parsed when the response to the one before is complete, as RFC 9112
 * (9.3.2) allows. What a client sends ahead is kept up to a bound; beyond it, it is not read.
 *
 *   idle ──first bytes──► head ──► exchange ──response, body──► idle
 *     │                     │          │ the response came before the end of the body: draining ──► idle
 *     ▼ too long            ▼ malformed, too slow               ▼ `Connection: close`, too much to drain
 *   closed                refused ──► ending: input is read and discarded, so that the client can read the response
 */

/** A connection, as the server looks after it. */
export interface ServedConnection extends Guest {
  readonly socket: Socket;
  /** Closes it if no request is under way, or as soon as none is. */
  closeIdle(): void;
  /** Closes what waits too long. Called now and then. */
  look(nowMs: number): void;
  /** The socket has closed. */
  closed(): void;
}

export interface ConnectionHandlers {
  readonly request: (exchange: Http1Exchange) => void;
  /** The request of `exchange` turned out to be malformed, or none could be read. The handler answers and ends the connection. */
  readonly malformed: (
    fault: ParseFault | "late",
    connection: ServerConnection,
    exchange: Http1Exchange | undefined,
  ) => void;
  /** Whether responses that begin now are the last of their connection. */
  readonly isClosing: () => boolean;
  /** The connection begins with the preface of HTTP/2, which `early` begins with: everything that was read of it. Its socket is left alone from now on. */
  readonly preface: (connection: ServerConnection, early: Buffer) => void;
  /** Its socket is out of HTTP/1.1, by an upgrade or before `preface`. */
  readonly detached: (connection: ServerConnection) => void;
  /** A head has begun to arrive and is not whole, or is no longer so. Not called for heads that are read at once. */
  readonly midHeadChanged: (connection: ServerConnection) => void;
  /** Counts chunks of a body that is discarded. */
  readonly onDiscarded: (socket: Socket, chunks: number) => void;
}

export interface ConnectionLimits {
  readonly headBytesMax: number;
  readonly requestHeadMs: number;
  readonly keepAliveMs: number;
  /** What tells clients of it. */
  readonly keepAliveLines: string;
  /** How much of a body is read and discarded after the response. */
  readonly drainBytesMax: number;
  /** For a client to take the last bytes of a response before its next request is read. */
  readonly answerIdleMs: number;
}

const HELD_BYTES_MAX = 64 * 1024;
const DRAIN_IDLE_MS = 10_000;
const DRAIN_MS = 60_000;
/** The parser's work is per chunk, whatever its size. */
const DRAIN_CHUNKS_MAX = 10_000;
const LINGER_MS = 5_000;
const LINGER_BYTES_MAX = 64 * 1024 * 1024;

export class ServerConnection implements ServedConnection, ExchangeOwner, BodyReceiver {
  readonly socket: Socket;
  readonly #handlers: ConnectionHandlers;
  readonly #limits: ConnectionLimits;
  readonly #onFault: OnFault;
  readonly #parser: MessageParser;
  #exchange: Http1Exchange | undefined;
  /** What came after the present request. */
  #held: Buffer | undefined;
  /** It is not read from because of what is held. */
  #isHoldingBack = false;
  #isParsing = false;
  /** The client has ended its direction. */
  #hasEnded = false;
  /** Nothing is parsed any more. */
  #isEnding = false;
  #isDetached = false;
  /** No request has come yet. */
  #isFresh = true;
  /** When what it waits for began: the first bytes of a head, the rest of one, of a body that is discarded, or for its client to read. */
  #sinceMs = performance.now();
  #isFlushing = false;
  #isDraining = false;
  #drainingSinceMs = 0;
  #drainedBytes = 0;
  #drainedChunks = 0;
  #lingeredBytes = 0;
  /** `performance.now()` by when an ending connection has to be closed: its client may neither read nor end its direction. */
  #closeByMs = Number.POSITIVE_INFINITY;

  constructor(socket: Socket, limits: ConnectionLimits, handlers: ConnectionHandlers, onFault: OnFault) {
    this.socket = socket;
    this.#onFault = onFault;
    this.#limits = limits;
    this.#handlers = handlers;
    this.#parser = new MessageParser("request", limits.headBytesMax);
    socket.on("data", this.#onData);
    socket.on("end", this.#onEnd);
    socket.on("error", ignore);
  }

  /** No request is under way, and none has begun to arrive. */
  get isIdle(): boolean {
    const isWaiting = this.#exchange === undefined && this.#held === undefined && !this.#isFlushing;
    return isWaiting && !this.#parser.isMidHead && !this.#isEnding;
  }

  /** Also while it waits for the rest of a head, and while it discards what its client still sends. Not while the client leaves a response untaken. */
  get idleSinceMs(): number | undefined {
    if (this.#isEnding) return this.socket.writableLength === 0 ? this.#sinceMs : undefined;
    if (this.#isDraining) return this.#drainingSinceMs;
    const isWaiting = this.#exchange === undefined && this.#held === undefined && !this.#isFlushing;
    return isWaiting ? this.#sinceMs : undefined;
  }

  makeRoom(): void {
    this.socket.destroy();
  }

  /** A part of a head has come, and the rest is waited for. */
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

  /** For the listener: the socket has closed. */
  closed(): void {
    this.#isEnding = true;
    this.#exchange?.closed();
    this.#exchange = undefined;
    this.#held = undefined;
    this.#parser.free();
  }

  /** Takes the socket out of HTTP, for an upgrade of the present request. Returns what came after its head. */
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

  /** Ends our direction, and discards what still arrives until the client ends its own, for a limited time. */
  endReading(): void {
    if (this.#isEnding || this.#isDetached) return;
    this.#isEnding = true;
    this.#exchange = undefined;
    this.#held = undefined;
    this.#parser.takeHeaders();
    this.#sinceMs = performance.now();
    this.#closeByMs = this.#sinceMs + (this.#hasEnded ? this.#limits.answerIdleMs : LINGER_MS);
    this.socket.end();
    if (!this.#hasEnded) this.socket.resume();
  }

  /** Closes what waits too long. Called now and then. */
  look(nowMs: number): void {
    if (this.#isEnding) {
      if (nowMs > this.#closeByMs) this.socket.destroy();
      return;
    }
    const { requestHeadMs, keepAliveMs, answerIdleMs } = this.#limits;
    const waitedMs = nowMs - this.#sinceMs;
    if (this.#isFlushing) {
      if (waitedMs > answerIdleMs) this.socket.destroy();
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

  /** Everything that the client has sent is parsed. */
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

  /** Parses what came before the response to the request before was complete. */
  readonly #parseHeld = (): void => {
    const held = this.#held;
    if (held === undefined || this.#isEnding) return;
    this.#held = undefined;
    try {
      this.#parse(held);
    } catch (error) {
      this.#onFault(error);
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
        this.#handlers.malformed(parser.fault as ParseFault, this, this.#exchange);
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
    const { body, pieces, phase } = this.#parser;
    const isLast = phase === "complete";
    if (body !== undefined) exchange.take(body, pieces, isLast);
    if (isLast && !this.#isEnding) exchange.complete();
    // It was paused, and something else has let it flow.
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
        this.#closeByMs = this.#sinceMs + this.#limits.answerIdleMs;
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

  /** What comes of a body after its response. */
  onPiece(bytes: Buffer, chunks: number): void {
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

  /** No request is read while the client leaves more than the socket's buffer of the responses before it: they would pile up. */
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
    // On the next tick, because answers may come at once, thousands of them.
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

const CUT_OFF: ParseFault = { kind: "malformed", reason: "The connection ended in the middle of it" };
const NOTHING = Buffer.alloc(0);
const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
const ignore = (): void => undefined;
