/**
 * Joins the chunks of a body as they arrive, because many small buffers are expensive: each costs a few hundred bytes of memory and a call
 * in each layer. A chunk can also be a view that keeps a much larger buffer in memory.
 */
export class ChunkBuffer {
  #bytes = 0;
  #joined: Buffer | undefined;

  get bytes(): number {
    return this.#bytes;
  }

  add(chunk: Buffer): void {
    const from = this.#bytes;
    this.#bytes += chunk.length;
    if (this.#joined === undefined) {
      // Most bodies consist of one chunk, so the first chunk is not copied.
      this.#joined = chunk;
      return;
    }
    // The first chunk has no spare capacity, so the copy below always writes into a buffer of this class, never into the caller's.
    if (this.#joined.length < this.#bytes) this.#joined = grown(this.#joined, from, this.#bytes);
    chunk.copy(this.#joined, from);
  }

  /** Returns all bytes added since the last call, as one buffer. */
  take(): Buffer {
    const joined = this.#joined?.subarray(0, this.#bytes) ?? NOTHING;
    this.#joined = undefined;
    this.#bytes = 0;
    return joined;
  }
}

const NOTHING = Buffer.alloc(0);
const GROWN_BYTES_MIN = 1024;

function grown(joined: Buffer, bytes: number, bytesMin: number): Buffer {
  const larger = Buffer.allocUnsafeSlow(Math.max(GROWN_BYTES_MIN, 2 * bytesMin));
  joined.copy(larger, 0, 0, bytes);
  return larger;
}

/**
 * Frees the memory of a read. V8 delays garbage collection until such memory has grown by 64 MiB, so this code does not wait for it. A view
 * of only a part of a larger buffer is not freed, because the rest may still be in use.
 */
export function freeRead({ buffer, byteLength }: Buffer): void {
  if (buffer instanceof ArrayBuffer && byteLength === buffer.byteLength) buffer.transfer(0);
}
