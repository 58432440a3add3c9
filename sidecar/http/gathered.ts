/**
 * Pieces of a body, joined as they come. Chunks may be of a single byte, and each that is kept by itself costs a few hundred
 * bytes of memory and a call for each layer on its way; and a piece may be a view of a large buffer that lives as long as it.
 */
export class Gathered {
  #bytes = 0;
  #joined: Buffer | undefined;

  get bytes(): number {
    return this.#bytes;
  }

  add(piece: Buffer): void {
    const from = this.#bytes;
    this.#bytes += piece.length;
    if (this.#joined === undefined) {
      // Mostly there is one piece, and nothing is copied.
      this.#joined = piece;
      return;
    }
    // The first piece fills its buffer, so it is never written into.
    if (this.#joined.length < this.#bytes) this.#joined = grown(this.#joined, from, this.#bytes);
    piece.copy(this.#joined, from);
  }

  /** All that was added since the last time, as one. */
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
