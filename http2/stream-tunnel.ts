import type { Http2Stream } from "node:http2";
import { Duplex } from "node:stream";

/** How the input of a stream is let flow, and stopped. */
export interface Flow {
  /** All has arrived, though it may not have been given yet. */
  readonly isWhole: boolean;
  resume(): void;
  pause(): void;
}

/**
 * A stream of HTTP/2 that carries another protocol (RFC 8441), as a connection of its own would. What has arrived is given to it by `onPiece` and
 * `onEnd`, joined, so that small frames cost no more than their bytes while the other side does not read.
 */
export class StreamTunnel extends Duplex {
  /** As of a socket. */
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

  /** Both sides have ended it. The last bytes may still have to be read, and the end after them. */
  get isDone(): boolean {
    return this.#flow.isWhole && this.writableEnded;
  }

  onPiece(bytes: Buffer): void {
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
    const isWhole = this.readableEnded && this.writableFinished;
    // Closing it would end it first. This resets it at once, with INTERNAL_ERROR.
    if (!isWhole && !this.#stream.destroyed) this.#stream.destroy(new Error("the tunnel was broken off"));
    done(error);
  }
}
