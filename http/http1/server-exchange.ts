import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { httpDate } from "./http-date.ts";

/*
 * One request of a client and its response: the interface that the gate uses, and its HTTP/1.1 implementation.
 *
 *   response:  none ──begin──► begun ──flushHead, write──► head sent ──end──► over
 *
 * The head of a response is sent with its first bytes, or with its end. Writes after the connection has closed are dropped;
 * `onClose` reports the close.
 */

export interface BodyReceiver {
  /**
   * Called with the body bytes of one read of the connection and the number of their chunks. After the last bytes, `onEnd` follows
   * immediately.
   */
  onChunk(bytes: Buffer, chunks: number, isLast: boolean): void;
  onEnd(): void;
}

export interface ReceivedHead {
  readonly method: string;
  readonly target: string;
  readonly version: "1.0" | "1.1" | "other";
  /** Alternating names and values of the headers, as received. */
  readonly headers: readonly string[];
  /** Whether the client requests an upgrade to the protocol in `Upgrade`, or a tunnel. */
  readonly isUpgrade: boolean;
  readonly keepsAlive: boolean;
}

export interface ResponseHead {
  readonly status: number;
  /** Reason phrase; `undefined` selects the standard phrase of the status. */
  readonly reason: string | undefined;
  /** Header lines, each with its CRLF, except framing headers. */
  readonly lines: string;
  /** Content length in bytes, equal to the Content-Length in `lines`; `undefined` if the length is not known in advance. */
  readonly length: number | undefined;
  /** Whether `lines` contains a `Date` header. */
  readonly isDated: boolean;
}

/** Returns whether a final response to a request with this method may have content (RFC 9110, 6.4.1). */
export const mayHaveContent = (method: string, status: number): boolean =>
  method !== "HEAD" && status !== 204 && status !== 304;

/** Head of the response to an upgrade. */
export interface UpgradeHead {
  /** Reason phrase; `undefined` selects the standard phrase of the status. */
  readonly reason: string | undefined;
  readonly protocol: string;
  /** Header lines, except the headers that identify the protocol. */
  readonly lines: string;
}

/** Connection or stream after an upgrade, which carries bytes in both directions. */
export interface Upgraded {
  readonly duplex: Duplex & { readonly bytesRead: number };
  /** Bytes that the client sent before the response. */
  readonly early: Buffer;
}

/** A request and its response, independent of the HTTP version. */
export interface ServerExchange {
  readonly method: string;
  readonly url: string;
  readonly httpVersion: ReceivedHead["version"] | "2.0";
  /**
   * Alternating names and values of the request headers, in HTTP/1.1 form. Emptied when the response is complete, to free memory while the
   * rest of the request may still arrive.
   */
  readonly rawHeaders: readonly string[];
  /** Whether the client requests an upgrade to the protocol in `Upgrade`, or a tunnel. */
  readonly isUpgrade: boolean;
  /**
   * Generated `Sec-WebSocket-Key`; `undefined` if the client has sent one or uses HTTP/1.1. An HTTP/2 client that sends no key does not
   * verify the response.
   */
  readonly madeKey: string | undefined;
  /** Highest status that the protocol supports. */
  readonly statusMax: number;
  /** Socket of the connection. With HTTP/2, other exchanges share it. */
  readonly socket: Socket;
  /** Whether the complete request has arrived. */
  readonly isComplete: boolean;
  /** Whether the connection stays open after the response. */
  keepsAlive: boolean;
  /** Whether a response has begun, so that no other response can be sent. */
  readonly headersSent: boolean;
  /** Whether the response is complete or the connection has closed. */
  readonly isOver: boolean;
  /** Called once when the connection closes before the response is complete. */
  onClose: (() => void) | undefined;
  /**
   * Called when the client half-closes the connection after its request. The client may have disconnected, or may still wait for the
   * response.
   */
  onInputEnd: (() => void) | undefined;
  /**
   * Whether the server still reads input for a short time after the last response of a connection, which lets the client read this
   * response.
   */
  lingers: boolean;
  /** Begins to pass the body to `receiver`, starting with the buffered part. */
  read(receiver: BodyReceiver): void;
  pause(): void;
  resume(): void;
  /** Stops the current producer of the response as if the connection had closed, so that another response can be sent. */
  abandon(): void;
  /** Accepts the upgrade, detaches the connection or stream from HTTP, and ends the exchange. */
  upgrade(head: UpgradeHead): Upgraded;
  /** Called when the connection or the HTTP/2 stream of the exchange closes. */
  onceClosed(listener: () => void): void;
  /** Sends an informational response with header lines. Must not be called after the response has begun, or for an HTTP/1.0 client. */
  writeInterim(status: number, lines: string): void;
  /** Begins the response. The head is sent together with the first content, or at the end. */
  begin(head: ResponseHead): void;
  /** Sends the head, if it is pending. */
  flushHead(): void;
  /**
   * Writes a part of the content, together with a pending head. `onWritten` is called when the socket or stream has accepted the bytes, or
   * with an error.
   */
  write(bytes: Buffer, onWritten: (error?: Error | null) => void): void;
  /** Ends the response, optionally with a last part of its content and trailers (header lines). */
  end(bytes?: Buffer, trailers?: string): void;
  /** Aborts an incomplete response in a way that lets the client detect the truncation. */
  breakOff(): void;
}

/** Connection to which an exchange belongs. */
export interface ExchangeOwner {
  readonly socket: Socket;
  /** `Keep-Alive` header lines for a response after which the connection stays open. */
  readonly keepAliveLines: string;
  /** Whether the connection closes after the response that is beginning. */
  readonly isClosing: boolean;
  /** Called when the exchange pauses or resumes its body. */
  flowChanged(exchange: Http1Exchange): void;
  answered(exchange: Http1Exchange): void;
  /** Detaches the socket from HTTP, and returns the bytes after the head. */
  detach(): Buffer;
}

/** Number of buffered bytes at which an unread body pauses, so that a large body pauses after its first read. */
export const EARLY_BYTES_MAX = 16 * 1024;
/** Maximum content length that is joined with the head into one string. This copies the bytes but saves a write. */
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
  isComplete = false;
  /** Whether the body is paused, so that the connection is not read. */
  isPaused = false;
  keepsAlive: boolean;
  headersSent = false;
  isOver = false;
  onClose: (() => void) | undefined;
  onInputEnd: (() => void) | undefined;
  lingers = false;

  readonly #owner: ExchangeOwner;
  #receiver: BodyReceiver | undefined;
  #early: Buffer[] = NO_PIECES;
  #earlyBytes = 0;
  #earlyChunks = 0;
  /** Pending head, which is sent together with the first content. */
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

  /** Begins to pass the body to a receiver; a later call replaces the receiver. */
  read(receiver: BodyReceiver): void {
    this.#receiver = receiver;
    // The body must be resumed before its buffered part is passed on, because the receiver may pause the body again.
    this.resume();
    if (this.#earlyBytes > 0) {
      const [first] = this.#early;
      const bytes = this.#early.length === 1 && first !== undefined ? first : Buffer.concat(this.#early);
      const chunks = this.#earlyChunks;
      this.#early = NO_PIECES;
      this.#earlyBytes = 0;
      this.#earlyChunks = 0;
      receiver.onChunk(bytes, chunks, this.isComplete);
    }
    if (this.isComplete) this.#receiver?.onEnd();
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

  /** Called by the connection with bytes of the body. */
  take(bytes: Buffer, chunks: number, isLast: boolean): void {
    if (this.#receiver !== undefined) {
      this.#receiver.onChunk(bytes, chunks, isLast);
      return;
    }
    if (this.#earlyBytes === 0) this.#early = [];
    this.#early.push(bytes);
    this.#earlyBytes += bytes.length;
    this.#earlyChunks += chunks;
    if (this.#earlyBytes > EARLY_BYTES_MAX) this.pause();
  }

  /** Called by the connection when the body is complete. */
  complete(): void {
    this.isComplete = true;
    // Resumes the connection, which the receiver may have paused with the last bytes. The receiver does not resume a complete body, but the
    // next request can be read only from a resumed connection.
    this.resume();
    this.#receiver?.onEnd();
  }

  /** Called by the connection when it has closed. */
  closed(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.abandon();
  }

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

  writeInterim(status: number, lines: string): void {
    if (this.headersSent || this.isOver || this.httpVersion !== "1.1") return;
    this.socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\n${lines}\r\n`, "latin1");
  }

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

  flushHead(): void {
    if (this.#head === "" || this.isOver) return;
    const head = this.#head;
    this.#head = "";
    this.socket.write(head, "latin1");
  }

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

  /** Ends the response. Trailers are sent only with chunked coding. */
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
   * Closes the connection of an incomplete response. The client usually detects the truncation by the framing. But if the end of the
   * connection is also the end of the response, as for HTTP/1.0 clients, only a reset shows the failure.
   */
  breakOff(): void {
    const endsWithConnection = this.#lastsToClose || this.httpVersion !== "1.1";
    // A TLS client detects a truncation by itself, and a TLS socket cannot be reset.
    if (endsWithConnection && !("encrypted" in this.socket)) this.socket.resetAndDestroy();
    else this.socket.destroy();
  }
}

const NO_PIECES: Buffer[] = [];
export const NO_HEADERS: readonly string[] = [];
