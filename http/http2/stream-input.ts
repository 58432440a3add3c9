import type { Http2Stream } from "node:http2";
import { ChunkBuffer } from "../http1/chunk-buffer.ts";
import { guardRun, type OnInternalError } from "../http1/guard.ts";

/*
 * Joins the data that arrives on an HTTP/2 stream, in either direction: the frames of one turn of the event loop are handed over as one
 * chunk, and
 * frames that arrive while it is paused are joined too.
 *
 *   paused ──resume──► flowing ──end of the stream──► ended: `onEnd` after the last chunk
 *      ◄────pause────────┘
 *
 * Node would keep each frame as a separate buffer of a few hundred bytes, which is a view of the complete read. A window of one-byte frames
 * would then hold 20 MB per stream, and more with other streams beside it. So Node's `push` is overridden: its own buffer stays empty. The
 * window of the stream bounds this buffer, because a paused stream consumes no data.
 */

export interface InputReceiver {
  /** `frames`: number of frames in `bytes`. After the last chunk `onEnd` follows immediately. */
  onChunk(bytes: Buffer, frames: number, isLast: boolean): void;
  onEnd(): void;
}

export interface InputOptions {
  /** Called with each frame, including those that are buffered. */
  readonly onFrame?: () => void;
  /** Called with an exception of the receiver. The stream is closed then. */
  readonly onInternalError: OnInternalError;
}

/** From this size on, joined data is handed over before the end of the turn. */
const HANDED_BYTES = 16 * 1024;
// RFC 9113, 7.
const INTERNAL_ERROR = 2;

export class StreamInput {
  readonly #stream: Http2Stream;
  readonly #receiver: InputReceiver;
  readonly #options: InputOptions;
  readonly #buffered = new ChunkBuffer();
  #frames = 0;
  #isPaused = true;
  #isEnded = false;
  #isOver = false;
  #isTurnDue = false;

  /** Begins paused. */
  constructor(stream: Http2Stream, receiver: InputReceiver, options: InputOptions) {
    this.#stream = stream;
    this.#receiver = receiver;
    this.#options = options;
    // Data that arrived between the stream's head and its event, as in the first packet of a connection.
    for (let early = stream.read(); early !== null; early = stream.read()) this.#take(early);
    stream.once("end", () => {
      if (!stream.closed) this.#ended();
    });
    const { push } = stream;
    stream.push = (bytes: Buffer | null): boolean => {
      if (bytes !== null) return this.#take(bytes);
      // Also called when the stream closes in another way.
      if (!stream.closed && !stream.destroyed) this.#ended();
      const isTaken = push.call(stream, null);
      // Needed for the `end` event, without which Node would not close the stream.
      stream.resume();
      return isTaken;
    };
  }

  /** Whether all data has arrived, though it may not be handed over yet. */
  get isComplete(): boolean {
    return this.#isEnded;
  }

  /** Stops handing over data, and drops the buffered data. */
  stop(): void {
    this.#isOver = true;
    this.#buffered.take();
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    if (this.#buffered.bytes > 0 || this.#isEnded) this.#handOverSoon();
    // Opens the window for the buffered bytes.
    if (!this.#isEnded && !this.#stream.destroyed) this.#stream._read(0);
  }

  #take(bytes: Buffer): boolean {
    const { onFrame } = this.#options;
    onFrame?.();
    if (this.#isOver) return true;
    this.#frames += 1;
    this.#buffered.add(this.#isPaused ? Buffer.from(bytes) : bytes);
    if (this.#isPaused) return false;
    if (this.#buffered.bytes >= HANDED_BYTES) this.#handOver();
    else this.#handOverSoon();
    return !this.#isPaused;
  }

  #ended(): void {
    this.#isEnded = true;
    if (!this.#isPaused) this.#handOverSoon();
  }

  #handOverSoon(): void {
    if (this.#isTurnDue) return;
    this.#isTurnDue = true;
    setImmediate(() => {
      this.#isTurnDue = false;
      this.#handOver();
    });
  }

  #handOver(): void {
    guardRun(
      () => {
        if (this.#isPaused || this.#isOver) return;
        const frames = this.#frames;
        this.#frames = 0;
        if (this.#buffered.bytes > 0) this.#receiver.onChunk(this.#buffered.take(), frames, this.#isEnded);
        if (!this.#isEnded || this.#isPaused || this.#isOver) return;
        this.#isOver = true;
        this.#receiver.onEnd();
      },
      (error) => {
        this.#options.onInternalError(error);
        this.#stream.close(INTERNAL_ERROR);
      },
    );
  }
}
