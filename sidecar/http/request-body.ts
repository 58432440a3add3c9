import { ChunkBuffer } from "../../http/http1/chunk-buffer.ts";
import { type BodyReceiver, EARLY_BYTES_MAX, type ServerExchange } from "../../http/http1/server-exchange.ts";
import { BodyPace, type PaceLimits } from "./body-pace.ts";
import type { ReadScheduler } from "./read-scheduler.ts";

/*
 * The body of a request on its way to the app.
 *
 *   buffering ──all of a small one──► handed over complete
 *       │
 *       └──first bytes of another───► handed over ──flowTo──► flowing
 *
 * The body is handed over only when there is data to send. Handing it over takes a concurrency slot, and clients could otherwise take slots
 * at no cost with heads that merely announce a body.
 */

export interface BodyLimits extends PaceLimits {
  /** Maximum Content-Length of a body that is buffered completely before it is passed on. */
  readonly bufferedBytesMax: number;
}

export interface BodyDeps {
  readonly bodyLimits: BodyLimits;
  readonly readScheduler: ReadScheduler;
}

/** Receiver of a body. */
export interface BodySink {
  /** Writes bytes. Returns false to pause the body until its `want` is called. */
  write(bytes: Buffer): boolean;
  end(): void;
}

/** Body bytes that a request buffers while it waits for a slot: one read. Node reads the same amount again into a paused socket. */
export const WAITING_BODY_BYTES_MAX = 64 * 1024;

export class RequestBody implements BodyReceiver {
  readonly #exchange: ServerExchange;
  readonly #turns: ReadScheduler;
  readonly #isSmall: boolean;
  readonly #pace: BodyPace;
  #onThere: ((body: Buffer | RequestBody) => void) | undefined;
  /** Bytes that arrive before a sink is attached. */
  readonly #buffered = new ChunkBuffer();
  #sink: BodySink | undefined;
  #hasEnded = false;
  #isDropped = false;
  /** Whether the app is waiting for data that the client has not sent yet. */
  #isDesired = true;

  /** Creates the body of `exchange`. `length` is its Content-Length; `undefined` with chunked coding. */
  constructor({ bodyLimits, readScheduler }: BodyDeps, exchange: ServerExchange, length: number | undefined) {
    this.#exchange = exchange;
    this.#turns = readScheduler;
    this.#isSmall = length !== undefined && length <= bodyLimits.bufferedBytesMax;
    this.#pace = new BodyPace(bodyLimits, performance.now());
  }

  /** Starts reading. Calls `onThere` once when data can be sent, or never if the client disconnects first. */
  whenThere(onThere: (body: Buffer | RequestBody) => void): void {
    this.#onThere = onThere;
    this.#exchange.read(this);
  }

  /** Writes the buffered data to the sink, and then all data that arrives. */
  flowTo(sink: BodySink): void {
    if (this.#isDropped) return;
    this.#sink = sink;
    if (this.#buffered.bytes > 0) this.#give(sink, this.#buffered.take());
    if (this.#hasEnded) sink.end();
  }

  /** Returns whether the client sends the body too slowly. Called about once a second. */
  isTooSlow(nowMs: number): boolean {
    return this.#pace.isTooSlow(nowMs, this.#isDesired && !this.#turns.isInLine(this.#exchange.socket));
  }

  /** Stops accepting data. The connection discards the rest of the body. */
  drop(): void {
    this.#isDropped = true;
    this.#isDesired = false;
    this.#onThere = undefined;
    this.#sink = undefined;
    this.#buffered.take();
  }

  /** Called by the sink when it can accept more data, after a write that returned false. */
  want(): void {
    if (this.#isDropped || this.#hasEnded) return;
    if (!this.#isDesired) this.#pace.waitFrom(performance.now());
    this.#isDesired = true;
    this.#exchange.resume();
  }

  onChunk(bytes: Buffer, chunks: number, isLast: boolean): void {
    if (!this.#isSmall) this.#turns.count(this.#exchange.socket, chunks);
    if (this.#isDropped) return;
    this.#pace.moved(bytes.length, performance.now());
    if (this.#sink !== undefined) {
      this.#give(this.#sink, bytes);
      return;
    }
    this.#buffered.add(bytes);
    // A body that arrived completely in one read is not paused, which would delay it; `onEnd` passes it on as one buffer.
    if (this.#isSmall || isLast) return;
    if (this.#buffered.bytes > EARLY_BYTES_MAX) this.#stopReading();
    if (this.#onThere !== undefined) this.#handOver(this);
  }

  onEnd(): void {
    if (this.#isDropped) return;
    this.#hasEnded = true;
    this.#isDesired = false;
    // The complete body arrived before any part of it was passed on, so it is passed on as one buffer.
    if (this.#onThere !== undefined) this.#handOver(this.#buffered.take());
    else this.#sink?.end();
  }

  #give(sink: BodySink, bytes: Buffer): void {
    // Reading may have stopped while the body waited for its sink. The sink itself calls `want` only after a write that returned false, so
    // `want` is called here.
    if (sink.write(bytes)) this.want();
    else this.#stopReading();
  }

  #stopReading(): void {
    this.#isDesired = false;
    this.#exchange.pause();
  }

  #handOver(body: Buffer | RequestBody): void {
    const onThere = this.#onThere;
    this.#onThere = undefined;
    onThere?.(body);
  }
}
