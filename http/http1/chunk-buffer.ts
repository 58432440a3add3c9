/**
 * Joins the chunks of a body as they arrive. A chunk may be a single byte, and each separate buffer costs a few hundred bytes of memory and
 * a call in each layer. A chunk may also be a view of a large buffer, which it keeps in memory.
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
    // The first chunk has no spare capacity, so the copy below never writes into its owner's buffer.
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
 * Frees the bytes of a read that were passed on as a whole, because V8 delays garbage collection until such memory has grown by 64 MiB.
 * Bytes that are only a part of a larger buffer are not freed, because others may use the rest.
 */
export function freeRead({ buffer, byteLength }: Buffer): void {
  if (buffer instanceof ArrayBuffer && byteLength === buffer.byteLength) buffer.transfer(0);
}
