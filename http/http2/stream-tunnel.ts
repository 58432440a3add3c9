import type { Http2Stream } from "node:http2";
import { Duplex } from "node:stream";

/** Resumes and pauses the input of a stream. */
export interface Flow {
  /** Whether all data has arrived. Some of it may still be buffered. */
  readonly isComplete: boolean;
  resume(): void;
  pause(): void;
}

/**
 * An HTTP/2 stream that carries another protocol (RFC 8441), with the interface of a socket. Input arrives through `onPiece` and `onEnd`.
 * Frames are joined, so small frames take no more memory than their bytes while the other side does not read.
 */
export class StreamTunnel extends Duplex {
  /** Number of bytes read, as for a socket. */
  bytesRead = 0;
  readonly #stream: Http2Stream;
  readonly #flow: Flow;

  constructor(stream: Http2Stream, flow: Flow) {
    super();
    this.#stream = stream;
    this.#flow = flow;
    stream.once("close", () => {
      if (!this.isDone) this.destroy();
    });
  }

  /** Whether both sides have ended the stream. The last bytes and the end may still be unread. */
  get isDone(): boolean {
    return this.#flow.isComplete && this.writableEnded;
  }

  onChunk(bytes: Buffer): void {
    this.bytesRead += bytes.length;
    if (!this.destroyed && !this.push(bytes)) this.#flow.pause();
  }

  onEnd(): void {
    if (!this.destroyed) this.push(null);
  }

  override _read(): void {
    this.#flow.resume();
  }

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    if (this.#stream.destroyed || this.#stream.closed) done(new Error("the stream is closed"));
    else this.#stream.write(bytes, done);
  }

  override _final(done: (error?: Error | null) => void): void {
    if (!this.#stream.destroyed) this.#stream.end();
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    const isComplete = this.readableEnded && this.writableFinished;
    // `close` would send END_STREAM first. `destroy` with an error resets the stream immediately, with INTERNAL_ERROR.
    if (!isComplete && !this.#stream.destroyed) this.#stream.destroy(new Error("the tunnel was broken off"));
    done(error);
  }
}
