import type { ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { guardEmits, type OnInternalError } from "../http1/guard.ts";
import {
  type BodyReceiver,
  mayHaveContent,
  NO_HEADERS,
  type ResponseHead,
  type ServerExchange,
  type Upgraded,
  type UpgradeHead,
} from "../http1/server-exchange.ts";
import { pushLines } from "./lines.ts";
import type { Http2Head } from "./read-head.ts";
import { StreamInput } from "./stream-input.ts";
import { StreamTunnel } from "./stream-tunnel.ts";

/*
 * One request of a client and its response on an HTTP/2 stream, with the states of `ServerExchange`. The stream provides backpressure: the
 * window grows only when data is read, and a write completes only when its data fits into the client's window. The end of an exchange ends
 * only its stream; the other streams of the connection continue. The time limit for a client to read a part of a response also applies to
 * the end of the response.
 */

/** Connection to which an exchange belongs. */
export interface Http2Owner {
  readonly socket: Socket;
  readonly isClosing: boolean;
  /** Sends GOAWAY, after which the client begins no more streams on this connection. */
  goAway(): void;
  /** Called when the response is complete. The client may not have read all of it. */
  answered(exchange: Http2Exchange): void;
  /** Called when the stream switches to another protocol. */
  upgraded(): void;
  /** Called when the client has reset the stream. */
  reset(): void;
  /** Called for each DATA frame of a body. */
  readonly onFrame: () => void;
  readonly onInternalError: OnInternalError;
}

// Error codes (RFC 9113, section 7).
const NO_ERROR = 0;
/** Maximum body bytes that are discarded after the response. */
const DRAIN_BYTES_MAX = 1024 * 1024;
const DRAIN_MS = 1_000;
/** HTTP/2 has no status 101; all other informational responses are sent. */
const SWITCHING_PROTOCOLS = 101;
/** Response header that HTTP/2 omits (RFC 8441, 5.1), unless the client has sent its own key. */
const ACCEPT = "sec-websocket-accept";
const NOTHING = Buffer.alloc(0);

export class Http2Exchange implements ServerExchange, BodyReceiver {
  readonly method: string;
  readonly url: string;
  readonly httpVersion = "2.0";
  rawHeaders: readonly string[];
  readonly isUpgrade: boolean;
  readonly madeKey: string | undefined;
  /** Highest status that Node accepts for HTTP/2. */
  readonly statusMax = 599;
  readonly socket: Socket;
  isComplete: boolean;
  isPaused = false;
  keepsAlive = true;
  lingers = false;
  headersSent = false;
  isOver = false;
  /** Time at which the response became complete, as `performance.now()`. */
  answeredMs = Number.POSITIVE_INFINITY;
  onClose: (() => void) | undefined;
  onInputEnd: (() => void) | undefined;

  readonly #owner: Http2Owner;
  readonly #stream: ServerHttp2Stream;
  readonly #input: StreamInput | undefined;
  #receiver: BodyReceiver | undefined;
  /** Pending head, which is sent together with the first content. */
  #head: (string | number)[] | undefined;
  /** Whether the response may end with trailers. */
  #mayTrail = false;
  #hasContent = true;
  #tunnel: StreamTunnel | undefined;
  #trailers = "";

  constructor(owner: Http2Owner, stream: ServerHttp2Stream, head: Http2Head, isComplete: boolean) {
    this.#owner = owner;
    this.#stream = stream;
    this.socket = owner.socket;
    this.method = head.method;
    this.url = head.target;
    this.rawHeaders = head.headers;
    this.madeKey = head.madeKey;
    this.isUpgrade = head.isUpgrade;
    this.isComplete = isComplete;
    stream.on("aborted", () => {
      owner.reset();
      this.#closed();
      // `aborted` is emitted before Node sends a pending reset, so the stream is destroyed on the next tick.
      process.nextTick(() => stream.destroy());
    });
    stream.once("close", () => this.#closed());
    stream.on("wantTrailers", () => this.#sendTrailers());
    if (isComplete) stream.resume();
    else this.#input = new StreamInput(stream, this, owner);
  }

  read(receiver: BodyReceiver): void {
    this.#receiver = receiver;
    if (this.isComplete) receiver.onEnd();
    else this.#input?.resume();
  }

  onChunk(bytes: Buffer, _frames: number, isLast: boolean): void {
    // The number of chunks is 0, because `onFrame` has already counted the frames.
    this.#receiver?.onChunk(bytes, 0, isLast);
  }

  onEnd(): void {
    this.isComplete = true;
    this.isPaused = false;
    this.#receiver?.onEnd();
  }

  pause(): void {
    if (this.isPaused || this.isComplete) return;
    this.isPaused = true;
    this.#input?.pause();
  }

  resume(): void {
    if (!this.isPaused) return;
    this.isPaused = false;
    this.#input?.resume();
  }

  abandon(): void {
    const { onClose } = this;
    this.onClose = undefined;
    onClose?.();
  }

  /** Accepts the upgrade with status 200, after which the stream carries the new protocol (RFC 8441). */
  upgrade({ lines }: UpgradeHead): Upgraded {
    const stream = this.#stream;
    this.isOver = true;
    this.headersSent = true;
    this.onClose = undefined;
    this.onInputEnd = undefined;
    this.#owner.upgraded();
    const fields: (string | number)[] = [":status", 200];
    pushLines(fields, lines, this.madeKey === undefined ? undefined : ACCEPT);
    if (!stream.destroyed && !stream.closed) stream.respond(fields as string[]);
    const input = this.#input;
    if (input === undefined) throw new Error("the request of an upgrade has ended");
    const duplex = new StreamTunnel(stream, input);
    this.#tunnel = duplex;
    guardEmits(duplex, ({ error }) => {
      this.#owner.onInternalError(error);
      duplex.destroy();
    });
    this.#receiver = duplex;
    return { duplex, early: NOTHING };
  }

  onceClosed(listener: () => void): void {
    this.#stream.once("close", listener);
  }

  writeInterim(status: number, lines: string): void {
    if (this.headersSent || this.isOver || this.#stream.destroyed || status === SWITCHING_PROTOCOLS) return;
    const fields: string[] = [];
    pushLines(fields, lines);
    const headers: Record<string, string | string[]> = {};
    for (let at = 0; at < fields.length; at += 2) {
      const name = fields[at] as string;
      const value = fields[at + 1] as string;
      const before = headers[name];
      headers[name] = before === undefined ? value : Array.isArray(before) ? [...before, value] : [before, value];
    }
    this.#stream.additionalHeaders({ ":status": status, ...headers });
  }

  begin({ status, lines, length }: ResponseHead): void {
    this.headersSent = true;
    this.#hasContent = mayHaveContent(this.method, status);
    this.#mayTrail = this.#hasContent && length === undefined;
    if (this.#owner.isClosing) this.#owner.goAway();
    const fields: string[] = [];
    pushLines(fields, lines);
    this.#head = [":status", status, ...fields];
  }

  flushHead(): void {
    this.#respond(!this.#hasContent);
  }

  write(bytes: Buffer, onWritten: (error?: Error | null) => void): void {
    if (this.isOver || !this.#hasContent) return;
    this.#respond(false);
    if (!this.#stream.destroyed) this.#stream.write(bytes, onWritten);
  }

  end(bytes?: Buffer, trailers = ""): void {
    if (this.isOver) return;
    const content = this.#hasContent && bytes !== undefined && bytes.length > 0 ? bytes : undefined;
    const waited = this.#head !== undefined;
    const stream = this.#stream;
    this.#trailers = trailers;
    this.#respond(content === undefined && trailers === "");
    this.isOver = true;
    this.onClose = undefined;
    this.answeredMs = performance.now();
    this.rawHeaders = NO_HEADERS;
    this.#owner.answered(this);
    if (stream.destroyed) return;
    if (!waited || content !== undefined || trailers !== "") {
      if (content === undefined) stream.end();
      // Copies the bytes, because the stream keeps them until they fit into its window, and the caller may reuse its buffer after this
      // call.
      else stream.end(Buffer.from(content));
    }
    if (this.isComplete) return;
    // A client need not send the rest of its request after a complete response (RFC 9113, section 8.1).
    if (stream.writableFinished) this.#dropRest();
    else stream.once("finish", () => this.#dropRest());
  }

  breakOff(): void {
    this.isOver = true;
    this.onClose = undefined;
    // `close` would send END_STREAM first. `destroy` with an error resets the stream immediately, with INTERNAL_ERROR.
    this.#stream.destroy(new Error("the response was broken off"));
  }

  #respond(endStream: boolean): void {
    const head = this.#head;
    const stream = this.#stream;
    if (head === undefined || this.isOver || stream.destroyed || stream.closed) return;
    this.#head = undefined;
    stream.respond(head as string[], { endStream, waitForTrailers: this.#mayTrail && !endStream });
  }

  #sendTrailers(): void {
    const fields: string[] = [];
    pushLines(fields, this.#trailers);
    const trailers: Record<string, string> = {};
    for (let at = 0; at < fields.length; at += 2) {
      const name = fields[at] as string;
      trailers[name] =
        trailers[name] === undefined ? (fields[at + 1] as string) : `${trailers[name]}, ${fields[at + 1]}`;
    }
    if (!this.#stream.destroyed && !this.#stream.closed) this.#stream.sendTrailers(trailers);
  }

  /**
   * Discards further request data, and resets the stream only later: an immediate reset, even with NO_ERROR, could overtake the response in
   * the client or in a gateway.
   */
  #dropRest(): void {
    const stream = this.#stream;
    if (this.isComplete || stream.destroyed) return;
    const close = (): void => {
      if (!stream.destroyed && !stream.closed) stream.close(NO_ERROR);
    };
    const timer = setTimeout(close, DRAIN_MS).unref();
    stream.once("close", () => clearTimeout(timer));
    let left = DRAIN_BYTES_MAX;
    this.#receiver = {
      onChunk: (bytes) => {
        left -= bytes.length;
        if (left < 0) close();
      },
      onEnd: () => undefined,
    };
    this.isPaused = false;
    this.#input?.resume();
  }

  #closed(): void {
    if (this.#tunnel?.isDone !== true) this.#input?.stop();
    if (this.isOver) return;
    this.isOver = true;
    this.abandon();
  }
}
