import type { Http2Stream } from "node:http2";
import { Gathered } from "../http1/gathered.ts";
import { guardRun, type OnFault } from "../http1/guard.ts";

/*
 * What arrives on a stream of HTTP/2, in either direction: the frames of one turn of the event loop are joined and handed over as one piece, and
 * what arrives while it is paused is kept joined too.
 *
 *   paused ──resume──► flowing ──end of the stream──► ended: told after the last piece
 *      ◄────pause────────┘
 *
 * Node would keep each frame as a buffer of its own, of some hundred bytes, which is a view of everything that was read with it. A window of frames of one
 * byte would then hold 20 MB for each stream, and more with other streams beside it. So Node's `push` is overridden: its own buffer stays empty, and the
 * window of the stream is what bounds this one, because a stream that is paused consumes nothing.
 */

export interface InputReceiver {
  /** `frames`: how many it came in. After the last piece `onEnd` follows at once. */
  onPiece(bytes: Buffer, frames: number, isLast: boolean): void;
  onEnd(): void;
}

export interface InputOptions {
  /** Called with each frame, also with those that are kept. */
  readonly onFrame?: () => void;
  /** What the receiver throws. The stream is closed then. */
  readonly onFault: OnFault;
}

/** From this size on, what is joined does not wait for the end of the turn. */
const HANDED_BYTES = 16 * 1024;
// RFC 9113, 7.
const INTERNAL_ERROR = 2;

export class StreamInput {
  readonly #stream: Http2Stream;
  readonly #receiver: InputReceiver;
  readonly #options: InputOptions;
  readonly #gathered = new Gathered();
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
    // What came between the stream's head and its event, as with the first packet of a connection.
    for (let early = stream.read(); early !== null; early = stream.read()) this.#take(early);
    stream.once("end", () => {
      if (!stream.closed) this.#ended();
    });
    const { push } = stream;
    stream.push = (bytes: Buffer | null): boolean => {
      if (bytes !== null) return this.#take(bytes);
      // Also called when the stream is closed in another way.
      if (!stream.closed && !stream.destroyed) this.#ended();
      const isTaken = push.call(stream, null);
      // For its `end`, without which Node would not close the stream.
      stream.resume();
      return isTaken;
    };
  }

  /** All has arrived, though it may not be handed over yet. */
  get isWhole(): boolean {
    return this.#isEnded;
  }

  /** Nothing more is handed over, and what is kept is dropped. */
  stop(): void {
    this.#isOver = true;
    this.#gathered.take();
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    if (this.#gathered.bytes > 0 || this.#isEnded) this.#handOverSoon();
    // Opens the window for what was kept.
    if (!this.#isEnded && !this.#stream.destroyed) this.#stream._read(0);
  }

  #take(bytes: Buffer): boolean {
    const { onFrame } = this.#options;
    onFrame?.();
    if (this.#isOver) return true;
    this.#frames += 1;
    this.#gathered.add(this.#isPaused ? Buffer.from(bytes) : bytes);
    if (this.#isPaused) return false;
    if (this.#gathered.bytes >= HANDED_BYTES) this.#handOver();
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
        if (this.#gathered.bytes > 0) this.#receiver.onPiece(this.#gathered.take(), frames, this.#isEnded);
        if (!this.#isEnded || this.#isPaused || this.#isOver) return;
        this.#isOver = true;
        this.#receiver.onEnd();
      },
      (error) => {
        this.#options.onFault(error);
        this.#stream.close(INTERNAL_ERROR);
      },
    );
  }
}
