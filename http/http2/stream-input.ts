import type { Http2Stream } from "node:http2";
import { ChunkBuffer } from "../http1/chunk-buffer.ts";
import { guardRun, type OnInternalError } from "../http1/guard.ts";

/*
 * Joins the data that arrives on an HTTP/2 stream, in either direction: the frames of one turn of the event loop, or those that arrive
 * while the input is paused, are passed on as one chunk.
 *
 *   paused ──resume──► flowing ──end of the stream──► ended: `onEnd` after the last chunk
 *      ◄────pause────────┘
 *
 * Node would keep each frame as a separate buffer object of a few hundred bytes, which also keeps the complete read in memory. A window of
 * one-byte frames would then take 20 MB per stream, and more if other streams share the connection. Therefore this class overrides Node's
 * `push`, and Node's buffer stays empty. The window of the stream bounds the joined data, because a paused stream consumes no data.
 */

export interface InputReceiver {
  /** Called with a chunk that consists of `frames` frames. After the last chunk, `onEnd` follows immediately. */
  onChunk(bytes: Buffer, frames: number, isLast: boolean): void;
  onEnd(): void;
}

export interface InputOptions {
  /** Called with each frame, even if the frame is buffered. */
  readonly onFrame?: () => void;
  /** Called with an exception that the receiver throws; after this, the stream is closed. */
  readonly onInternalError: OnInternalError;
}

/** Number of joined bytes at which data is passed on immediately instead of at the end of the current event loop turn. */
const HANDED_BYTES = 16 * 1024;
// Error code (RFC 9113, section 7).
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

  /** Starts to collect the input of a stream. The input begins paused. */
  constructor(stream: Http2Stream, receiver: InputReceiver, options: InputOptions) {
    this.#stream = stream;
    this.#receiver = receiver;
    this.#options = options;
    // Data may arrive before the `stream` event, for example in the first packet of a connection.
    for (let early = stream.read(); early !== null; early = stream.read()) this.#take(early);
    stream.once("end", () => {
      if (!stream.closed) this.#ended();
    });
    const { push } = stream;
    stream.push = (bytes: Buffer | null): boolean => {
      if (bytes !== null) return this.#take(bytes);
      // Node also pushes `null` when a stream closes prematurely.
      if (!stream.closed && !stream.destroyed) this.#ended();
      const isTaken = push.call(stream, null);
      // Resumes the stream, because Node closes it only after the `end` event, which is emitted only while the stream flows.
      stream.resume();
      return isTaken;
    };
  }

  /** Whether all data has arrived. Some of it may still be buffered. */
  get isComplete(): boolean {
    return this.#isEnded;
  }

  /** Stops passing on data, and drops the buffered data. */
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
    // Makes Node enlarge the stream's window by the buffered bytes.
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
