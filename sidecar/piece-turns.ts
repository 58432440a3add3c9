import { guardRun, type OnFault } from "./guard.ts";

/*
 * The bodies of requests that are being read, turn by turn of the event loop. What comes of a body in one turn goes on as one
 * piece. And since it is the parser's work for each chunk that costs, and a packet may hold ten thousand chunks of one byte:
 *
 *   - After `TURN_PIECES_MAX` pieces, of all bodies together, none is read any more in this turn, so that no turn is long.
 *   - A body that came in more than `HEAVY_PIECES` pieces in a turn stands in line. One at a time is read from, and
 *     between two there is a rest that leaves three quarters of the time to everybody else.
 */

/** A body that is being read. */
export interface Reader {
  /** In this turn; kept by `PieceTurns`. */
  pieces: number;
  /** Not to be read from now; kept by `PieceTurns`. */
  isHeld: boolean;
  /** The turn is over: what came goes on. */
  endTurn(): void;
  /** Reads no further. */
  hold(): void;
  /** May be read from again. */
  letGo(): void;
}

const TURN_PIECES_MAX = 2_048;
/** With reads of 64 KiB: chunks of fewer than 60 bytes. */
const HEAVY_PIECES = 1_024;
const REST_FACTOR = 3;
const REST_MS_MAX = 1_000;

export class PieceTurns {
  readonly #onFault: OnFault;
  readonly #readers = new Set<Reader>();
  /** Those with pieces in this turn. */
  #touched: Reader[] = [];
  #pieces = 0;
  #sinceMs = 0;
  /** Held after a turn with very many pieces, the one that waits longest first. */
  readonly #line = new Set<Reader>();
  #timer: NodeJS.Timeout | undefined;

  constructor(onFault: OnFault) {
    this.#onFault = onFault;
  }

  add(reader: Reader): void {
    this.#readers.add(reader);
  }

  /** Its body is read to the end, or by others. */
  delete(reader: Reader): void {
    if (!this.#readers.delete(reader)) return;
    this.#line.delete(reader);
    letGo(reader);
  }

  /** A piece of the reader's body came. */
  count(reader: Reader): void {
    reader.pieces += 1;
    if (reader.pieces === 1) {
      this.#touched.push(reader);
      if (this.#touched.length === 1) {
        this.#sinceMs = performance.now();
        // Not the next tick: the parser lets ticks run between two chunks.
        setImmediate(this.#endTurn);
      }
    }
    this.#pieces += 1;
    if (this.#pieces === TURN_PIECES_MAX) for (const one of this.#readers) hold(one);
  }

  readonly #endTurn = (): void => {
    const touched = this.#touched;
    const wasHeld = this.#pieces >= TURN_PIECES_MAX;
    this.#touched = [];
    this.#pieces = 0;
    for (const reader of touched) {
      const { pieces } = reader;
      reader.pieces = 0;
      guardRun(() => reader.endTurn(), this.#onFault);
      if (pieces < HEAVY_PIECES || !this.#readers.has(reader)) continue;
      hold(reader);
      this.#line.add(reader);
    }
    if (wasHeld) for (const reader of this.#readers) if (!this.#line.has(reader)) letGo(reader);
    const tookMs = performance.now() - this.#sinceMs;
    if (this.#line.size > 0) this.#timer ??= setTimeout(this.#next, Math.min(REST_FACTOR * tookMs, REST_MS_MAX));
  };

  readonly #next = (): void => {
    this.#timer = undefined;
    const [reader] = this.#line;
    if (reader === undefined) return;
    this.#line.delete(reader);
    guardRun(() => letGo(reader), this.#onFault);
    // If it has nothing to read, the others do not wait for it: a turn without pieces sets no timer.
    if (this.#line.size > 0) this.#timer = setTimeout(this.#next, LOOK_MS);
  };
}

const LOOK_MS = 50;

function hold(reader: Reader): void {
  if (reader.isHeld) return;
  reader.isHeld = true;
  reader.hold();
}

function letGo(reader: Reader): void {
  if (!reader.isHeld) return;
  reader.isHeld = false;
  reader.letGo();
}
