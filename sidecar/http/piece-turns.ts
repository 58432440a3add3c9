import type { Socket } from "node:net";
import { guardRun, type OnFault } from "../../http1/guard.ts";

/*
 * Bodies of clients, by turns of the event loop. All bytes of a body in one turn are passed on as one piece. The
 * parser's work is per chunk, and a packet may hold ten thousand chunks of one byte, therefore:
 *
 *   - After `TURN_PIECES_MAX` pieces, of all bodies together, no connection is read from any more in this turn. One read
 *     cannot be stopped in the middle, but each connection may bring as much, and a thousand may be ready at once.
 *   - A connection that brought `HEAVY_PIECES` or more in a turn is queued, and so is one that brought more than its share
 *     of a full turn. Queued connections are read one at a time, with rests in between that leave three quarters of the time to
 *     all others.
 */

/** How a connection is not read from for a while. */
export interface Holdable {
  /** Also called again while it is held. */
  hold(): void;
  letGo(): void;
}

/** A client's connection. */
interface Inflow {
  readonly socket: Socket;
  readonly reading: Holdable;
  /** In this turn. */
  pieces: number;
  isHeld: boolean;
}

const TURN_PIECES_MAX = 2_048;
/** With reads of 64 KiB: chunks of fewer than 60 bytes. */
const HEAVY_PIECES = 1_024;
/** With reads of 64 KiB: chunks of 2 KiB and more, which cost what their bytes cost. */
const LIGHT_PIECES = 32;
const REST_FACTOR = 3;
const REST_MS_MAX = 1_000;
/** The most time that the queue waits for a connection that has nothing to read. */
const LOOK_MS = 50;

export class PieceTurns {
  readonly #onFault: OnFault;
  readonly #inflows = new Map<Socket, Inflow>();
  /** Those with pieces in this turn. */
  #touched: Inflow[] = [];
  #pieces = 0;
  #sinceMs = 0;
  #isEndDue = false;
  /** Connections held after a turn with very many pieces, the longest waiting first. */
  readonly #line = new Set<Inflow>();
  #timer: NodeJS.Timeout | undefined;

  constructor(onFault: OnFault) {
    this.#onFault = onFault;
  }

  /** Call it for each new connection; it is forgotten when it closes. `reading`: how it is held, if others than listeners of the socket read it. */
  watch(socket: Socket, reading: Holdable = new HoldableSocket(socket)): void {
    const inflow: Inflow = { socket, reading, pieces: 0, isHeld: false };
    this.#inflows.set(socket, inflow);
    socket.once("close", () => this.leave(socket));
    if (this.#isFull) hold(inflow);
  }

  /** Its bytes are not request bodies any more. */
  leave(socket: Socket): void {
    const inflow = this.#inflows.get(socket);
    if (inflow === undefined) return;
    this.#inflows.delete(socket);
    this.#line.delete(inflow);
    letGo(inflow);
  }

  /** Whether it is queued: then it is not the client's fault that nothing arrives. */
  isInLine(socket: Socket): boolean {
    const inflow = this.#inflows.get(socket);
    return inflow !== undefined && this.#line.has(inflow);
  }

  /** So many pieces of a body arrived on this connection, in one read. */
  count(socket: Socket, pieces: number): void {
    const wasFull = this.#isFull;
    this.#pieces += pieces;
    const inflow = this.#inflows.get(socket);
    if (inflow !== undefined) {
      if (inflow.pieces === 0) this.#touched.push(inflow);
      inflow.pieces += pieces;
    }
    this.#endSoon();
    if (!this.#isFull) return;
    if (!wasFull) for (const one of this.#inflows.values()) hold(one);
    else if (inflow !== undefined) hold(inflow);
  }

  #endSoon(): void {
    if (this.#isEndDue) return;
    this.#isEndDue = true;
    this.#sinceMs = performance.now();
    setImmediate(this.#endTurn);
  }

  get #isFull(): boolean {
    return this.#pieces >= TURN_PIECES_MAX;
  }

  readonly #endTurn = (): void => {
    const [touched, wasFull] = [this.#touched, this.#isFull];
    [this.#touched, this.#pieces, this.#isEndDue] = [[], 0, false];
    const share = wasFull ? Math.max(LIGHT_PIECES, TURN_PIECES_MAX / touched.length) : HEAVY_PIECES;
    let isRestDue = false;
    for (const inflow of touched) {
      const { socket, pieces } = inflow;
      inflow.pieces = 0;
      if (!this.#inflows.delete(socket)) continue;
      // Moved to the end: those that were not read in a full turn come first in the next one.
      this.#inflows.set(socket, inflow);
      if (pieces < Math.min(share, HEAVY_PIECES)) continue;
      hold(inflow);
      this.#line.add(inflow);
      isRestDue = true;
    }
    if (wasFull) for (const inflow of this.#inflows.values()) if (!this.#line.has(inflow)) letGo(inflow);
    if (!isRestDue) return;
    const tookMs = performance.now() - this.#sinceMs;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#next, Math.min(REST_FACTOR * tookMs, REST_MS_MAX));
  };

  readonly #next = (): void => {
    this.#timer = undefined;
    const [inflow] = this.#line;
    if (inflow === undefined) return;
    // The next turn has room.
    if (this.#isFull) {
      this.#timer = setTimeout(this.#next, 1);
      return;
    }
    this.#line.delete(inflow);
    guardRun(() => letGo(inflow), this.#onFault);
    // Only a turn with many pieces delays this.
    if (this.#line.size > 0) this.#timer = setTimeout(this.#next, LOOK_MS);
  };
}

function hold(inflow: Inflow): void {
  inflow.isHeld = true;
  inflow.reading.hold();
}

function letGo(inflow: Inflow): void {
  if (!inflow.isHeld) return;
  inflow.isHeld = false;
  inflow.reading.letGo();
}

/** The message's own `pause` would take effect only when its buffer is full, after tens of thousands of small pieces. */
class HoldableSocket implements Holdable {
  readonly #socket: Socket;
  #isHeld = false;
  /** It would be read from if it were not held. */
  #isWanted = true;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  hold(): void {
    if (this.#isHeld) return;
    this.#isHeld = true;
    this.#isWanted = !this.#socket.isPaused();
    this.#socket.on("resume", this.#onResume);
    this.#socket.pause();
  }

  letGo(): void {
    this.#isHeld = false;
    this.#socket.off("resume", this.#onResume);
    if (this.#isWanted && !this.#socket.destroyed) this.#socket.resume();
  }

  /** Pauses again when something resumes it while it is held. */
  readonly #onResume = (): void => {
    this.#isWanted = true;
    this.#socket.pause();
    // If it was resumed before it was held, it is paused already, but its reader has just started again.
    this.#socket.emit("pause");
  };
}
