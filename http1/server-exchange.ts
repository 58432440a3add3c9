import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { httpDate } from "./http-date.ts";

/*
 * One request of a client and its response: what the gate uses of it, and how HTTP/1.1 carries it.
 *
 *   response:  none ──begin──► begun ──flushHead, write──► head sent ──end──► over
 *
 * The head of a response is sent with its first bytes, or with its end. What is written after the connection has closed is dropped;
 * `onClose` tells of it.
 */

/** Receives the body of a request. */
export interface BodyReceiver {
  /** The bytes of one read of the connection, which came in so many chunks. After the last ones, `onEnd` follows at once. */
  onPiece(bytes: Buffer, chunks: number, isLast: boolean): void;
  onEnd(): void;
}

export interface ReceivedHead {
  readonly method: string;
  readonly target: string;
  readonly version: "1.0" | "1.1" | "other";
  /** Names and values alternating, as they came. */
  readonly headers: readonly string[];
  /** The client switches to what `Upgrade` names, or opens a tunnel. */
  readonly isUpgrade: boolean;
  readonly keepsAlive: boolean;
}

export interface ResponseHead {
  readonly status: number;
  /** undefined: the standard phrase. */
  readonly reason: string | undefined;
  /** Whole lines, each with its end, without those that say how the response ends. */
  readonly lines: string;
  /** Bytes of the content, which a line of `lines` says too; undefined: only its end tells. */
  readonly length: number | undefined;
  /** Whether `lines` has a Date. */
  readonly isDated: boolean;
}

/** Whether a final response may have content, by the method of its request (RFC 9110, 6.4.1). */
export const mayHaveContent = (method: string, status: number): boolean =>
  method !== "HEAD" && status !== 204 && status !== 304;

/** The head of the answer to an upgrade. */
export interface UpgradeHead {
  /** undefined: the standard phrase. */
  readonly reason: string | undefined;
  readonly protocol: string;
  /** Whole lines, without those that name the protocol. */
  readonly lines: string;
}

/** What a request was upgraded to: bytes in both directions. */
export interface Upgraded {
  readonly duplex: Duplex & { readonly bytesRead: number };
  /** What the client sent before the answer. */
  readonly early: Buffer;
}

/** What the gate uses of a request and its response, whatever protocol carries them. */
export interface ServerExchange {
  readonly method: string;
  readonly url: string;
  readonly httpVersion: ReceivedHead["version"] | "2.0";
  /** Names and values alternating, in the form of HTTP/1.1. None once the response is complete, because the rest of the request may take long. */
  readonly rawHeaders: readonly string[];
  /** The client switches to what `Upgrade` names, or opens a tunnel. */
  readonly isUpgrade: boolean;
  /** The `Sec-WebSocket-Key` that was made for a client of HTTP/2 that sent none, and does not check its answer. */
  readonly madeKey: string | undefined;
  /** The highest status that can be answered. */
  readonly statusMax: number;
  /** Of the connection, which with HTTP/2 carries other exchanges too. */
  readonly socket: Socket;
  /** All of the request has arrived. */
  readonly isComplete: boolean;
  /** Whether the connection goes on after the response. */
  keepsAlive: boolean;
  /** A response has begun, so that no other can be sent. */
  readonly headersSent: boolean;
  /** The response is complete, or the connection has closed. */
  readonly isOver: boolean;
  /** Called once when the connection closes before the response is complete. */
  onClose: (() => void) | undefined;
  /** Called when the client ends its direction after its request: it may be gone, or wait for the response. */
  onInputEnd: (() => void) | undefined;
  /** If the connection ends with the response, what the client still sends is read for a while, so that it can read the response. */
  lingers: boolean;
  /** Begins to read the body, with what has come of it. */
  read(receiver: BodyReceiver): void;
  pause(): void;
  resume(): void;
  /** What was working on the response stops, as if the connection had closed, so that another can be sent. */
  abandon(): void;
  /** Tells the client that its upgrade is accepted, and takes what carries the exchange out of HTTP. The exchange is over. */
  upgrade(head: UpgradeHead): Upgraded;
  /** Called when what carries the exchange closes: its connection, or its stream of HTTP/2. */
  onceClosed(listener: () => void): void;
  /** Sends an informational response with whole lines. Not after the response has begun, and not to a client of HTTP/1.0. */
  writeInterim(status: number, lines: string): void;
  /** Begins the response. The head is sent with what follows. */
  begin(head: ResponseHead): void;
  /** Sends the head, if it waits. */
  flushHead(): void;
  /** Writes a part of the content, with the head if it waits. `onWritten` is called when the client's side has taken it, or with an error. */
  write(bytes: Buffer, onWritten: (error?: Error | null) => void): void;
  /** Ends the response, with a last part of its content and with trailers: whole lines. */
  end(bytes?: Buffer, trailers?: string): void;
  /** Breaks off a response that has begun and will not be complete, so that the client notices. */
  breakOff(): void;
}

/** The connection of an exchange. */
export interface ExchangeOwner {
  readonly socket: Socket;
  /** The lines of a response after which the connection goes on. */
  readonly keepAliveLines: string;
  /** Whether the connection ends with the response that begins now. */
  readonly isClosing: boolean;
  /** The exchange takes no more of the body for now, or does again. */
  flowChanged(exchange: Http1Exchange): void;
  answered(exchange: Http1Exchange): void;
  /** Takes the socket out of HTTP, and returns what came after the head. */
  detach(): Buffer;
}

/** Bytes of a body that are kept while it is not read. */
const EARLY_BYTES_MAX = 64 * 1024;
/** Up to this length bytes are joined with the head into one text, which is a copy. */
export const JOINED_BYTES_MAX = 16 * 1024;

export class Http1Exchange implements ServerExchange {
  readonly method: string;
  readonly url: string;
  readonly httpVersion: ReceivedHead["version"];
  rawHeaders: readonly string[];
  readonly isUpgrade: boolean;
  readonly madeKey = undefined;
  readonly statusMax = 999;
  readonly socket: Socket;
  /** All of the request has arrived. */
  isComplete = false;
  /** The body is paused: the connection is not read from. */
  isPaused = false;
  /** Whether the connection goes on after the response. */
  keepsAlive: boolean;
  /** A response has begun, so that no other can be sent. */
  headersSent = false;
  /** The response is complete, or the connection has closed. */
  isOver = false;
  /** Called once when the connection closes before the response is complete. */
  onClose: (() => void) | undefined;
  /** Called when the client ends its direction after its request: it may be gone, or wait for the response. */
  onInputEnd: (() => void) | undefined;
  /** If the connection ends with the response, what the client still sends is read for a while, so that it can read the response. */
  lingers = false;

  readonly #owner: ExchangeOwner;
  #receiver: BodyReceiver | undefined;
  #early: Buffer[] = NO_PIECES;
  #earlyBytes = 0;
  #earlyChunks = 0;
  /** The head that waits for the first bytes. */
  #head = "";
  #isChunked = false;
  #hasContent = true;
  #lastsToClose = false;

  constructor(owner: ExchangeOwner, head: ReceivedHead) {
    this.#owner = owner;
    this.socket = owner.socket;
    this.method = head.method;
    this.url = head.target;
    this.httpVersion = head.version;
    this.rawHeaders = head.headers;
    this.isUpgrade = head.isUpgrade;
    this.keepsAlive = head.keepsAlive;
  }

  /** Begins to read the body, with what has come of it. One receiver follows another. */
  read(receiver: BodyReceiver): void {
    this.#receiver = receiver;
    if (this.#earlyBytes > 0) {
      const [first] = this.#early;
      const bytes = this.#early.length === 1 && first !== undefined ? first : Buffer.concat(this.#early);
      const chunks = this.#earlyChunks;
      this.#early = NO_PIECES;
      this.#earlyBytes = 0;
      this.#earlyChunks = 0;
      receiver.onPiece(bytes, chunks, this.isComplete);
    }
    if (this.isComplete) this.#receiver?.onEnd();
    else this.resume();
  }

  pause(): void {
    if (this.isPaused || this.isComplete) return;
    this.isPaused = true;
    this.#owner.flowChanged(this);
  }

  resume(): void {
    if (!this.isPaused) return;
    this.isPaused = false;
    this.#owner.flowChanged(this);
  }

  /** For the connection: bytes of the body have come. */
  take(bytes: Buffer, chunks: number, isLast: boolean): void {
    if (this.#receiver !== undefined) {
      this.#receiver.onPiece(bytes, chunks, isLast);
      return;
    }
    if (this.#earlyBytes === 0) this.#early = [];
    this.#early.push(bytes);
    this.#earlyBytes += bytes.length;
    this.#earlyChunks += chunks;
    if (this.#earlyBytes > EARLY_BYTES_MAX) this.pause();
  }

  /** For the connection: the body is complete. */
  complete(): void {
    this.isComplete = true;
    // It may have been paused with its last bytes, and its receiver does not resume what is complete: the next request is to be read.
    this.resume();
    this.#receiver?.onEnd();
  }

  /** For the connection: it has closed. */
  closed(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.abandon();
  }

  /** What was working on the response stops, as if the connection had closed, so that another can be sent. */
  abandon(): void {
    const { onClose } = this;
    this.onClose = undefined;
    onClose?.();
  }

  upgrade({ reason, protocol, lines }: UpgradeHead): Upgraded {
    const { socket } = this;
    this.isOver = true;
    this.headersSent = true;
    this.onClose = undefined;
    this.onInputEnd = undefined;
    const early = this.#owner.detach();
    const status = `HTTP/1.1 101 ${reason ?? "Switching Protocols"}\r\n`;
    socket.write(`${status}Connection: Upgrade\r\nUpgrade: ${protocol}\r\n${lines}\r\n`, "latin1");
    return { duplex: socket, early };
  }

  onceClosed(listener: () => void): void {
    this.socket.once("close", listener);
  }

  /** Sends an informational response with whole lines. Not after the response has begun, and not to a client of HTTP/1.0. */
  writeInterim(status: number, lines: string): void {
    if (this.headersSent || this.isOver || this.httpVersion !== "1.1") return;
    this.socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\n${lines}\r\n`, "latin1");
  }

  /** Begins the response. The head is sent with what follows. */
  begin({ status, reason, lines, length, isDated }: ResponseHead): void {
    this.headersSent = true;
    this.#hasContent = mayHaveContent(this.method, status);
    if (this.#owner.isClosing) this.keepsAlive = false;
    let framing = "";
    if (length === undefined && this.#hasContent) {
      if (this.httpVersion === "1.1") {
        this.#isChunked = true;
        framing = "transfer-encoding: chunked\r\n";
      } else {
        this.#lastsToClose = true;
        this.keepsAlive = false;
      }
    }
    framing += this.keepsAlive ? this.#owner.keepAliveLines : "connection: close\r\n";
    const date = isDated ? "" : `date: ${httpDate()}\r\n`;
    this.#head = `HTTP/1.1 ${status} ${reason ?? STATUS_CODES[status] ?? "unknown"}\r\n${lines}${date}${framing}\r\n`;
  }

  /** Sends the head, if it waits. */
  flushHead(): void {
    if (this.#head === "" || this.isOver) return;
    const head = this.#head;
    this.#head = "";
    this.socket.write(head, "latin1");
  }

  /** Writes a part of the content, with the head if it waits. `onWritten` is called when the client's side has taken it, or with an error. */
  write(bytes: Buffer, onWritten: (error?: Error | null) => void): void {
    const { socket } = this;
    if (this.isOver || !this.#hasContent) return;
    const head = this.#head;
    this.#head = "";
    const before = this.#isChunked ? `${head}${bytes.length.toString(16)}\r\n` : head;
    const after = this.#isChunked ? "\r\n" : "";
    if (bytes.length <= JOINED_BYTES_MAX) {
      socket.write(before + bytes.toString("latin1") + after, "latin1", onWritten);
      return;
    }
    socket.cork();
    if (before !== "") socket.write(before, "latin1");
    if (after === "") socket.write(bytes, onWritten);
    else {
      socket.write(bytes);
      socket.write(after, "latin1", onWritten);
    }
    socket.uncork();
  }

  /** Ends the response, with a last part of its content and with trailers: whole lines, which only chunked coding can carry. */
  end(bytes?: Buffer, trailers = ""): void {
    if (this.isOver) return;
    this.isOver = true;
    this.onClose = undefined;
    this.rawHeaders = NO_HEADERS;
    const { socket } = this;
    let before = this.#head;
    this.#head = "";
    const last = this.#isChunked ? `0\r\n${trailers}\r\n` : "";
    if (bytes === undefined || bytes.length === 0 || !this.#hasContent) {
      if (before !== "" || last !== "") socket.write(before + last, "latin1");
    } else {
      if (this.#isChunked) before += `${bytes.length.toString(16)}\r\n`;
      const after = this.#isChunked ? `\r\n${last}` : "";
      if (bytes.length <= JOINED_BYTES_MAX) socket.write(before + bytes.toString("latin1") + after, "latin1");
      else {
        socket.cork();
        if (before !== "") socket.write(before, "latin1");
        socket.write(bytes);
        if (after !== "") socket.write(after, "latin1");
        socket.uncork();
      }
    }
    this.#owner.answered(this);
  }

  /**
   * Closes the connection of a response that has begun and will not be complete. The client notices by the framing, except where the end of
   * the connection ends the response, as for clients of HTTP/1.0: there only a reset shows the failure.
   */
  breakOff(): void {
    const endsWithConnection = this.#lastsToClose || this.httpVersion !== "1.1";
    // TLS says by itself that it was cut, and cannot be reset.
    if (endsWithConnection && !("encrypted" in this.socket)) this.socket.resetAndDestroy();
    else this.socket.destroy();
  }
}

const NO_PIECES: Buffer[] = [];
export const NO_HEADERS: readonly string[] = [];
