import type { Socket } from "node:net";
import { guardRun, type OnInternalError } from "../../http/http1/guard.ts";

/*
 * Schedules the reading of client bodies per turn of the event loop. All bytes of a body in one turn are passed on as one chunk. The
 * parser's cost is per HTTP chunk, and a packet may contain 10,000 chunks of one byte. Therefore the scheduler limits chunks:
 *
 *   - After `TURN_CHUNKS_MAX` chunks of all bodies together, reading from all connections is paused for the rest of the turn. One read
 *     cannot be interrupted, and 1,000 connections may be readable at the same time.
 *   - A connection that sends at least `HEAVY_CHUNKS` chunks in a turn, or exceeds its share of a full turn, is queued. Queued
 *     connections are read one at a time, with pauses that leave three quarters of the time to all other connections.
 */

/** Pauses and resumes reading from a connection. */
export interface PausableReads {
  /** Pauses reading. May be called again while reading is paused. */
  pauseReads(): void;
  resumeReads(): void;
}

interface Inflow {
  readonly socket: Socket;
  readonly reading: PausableReads;
  /** Number of chunks that the connection has received in the current turn of the event loop. */
  chunks: number;
  isPaused: boolean;
}

const TURN_CHUNKS_MAX = 2_048;
/**
 * Number of chunks in one turn of the event loop after which a connection is queued. A single read of 64 KiB reaches this number only if
 * the average chunk is smaller than 60 bytes.
 */
const HEAVY_CHUNKS = 1_024;
/**
 * Number of chunks that each connection may receive even in a full turn. A read of 64 KiB consists of this many chunks if each has 2 KiB;
 * chunks of this size cost no more than their bytes.
 */
const LIGHT_CHUNKS = 32;
const REST_FACTOR = 3;
const REST_MS_MAX = 1_000;
/** Maximum time that the queue waits for a connection that has no data. */
const POLL_MS = 50;

export class ReadScheduler {
  readonly #onInternalError: OnInternalError;
  readonly #inflows = new Map<Socket, Inflow>();
  /** Connections that received chunks in this turn of the event loop. */
  #touched: Inflow[] = [];
  #chunks = 0;
  #sinceMs = 0;
  #isEndDue = false;
  /** Queue of paused connections that sent too many chunks; the longest waiting one is first. */
  readonly #line = new Set<Inflow>();
  #timer: NodeJS.Timeout | undefined;

  constructor(onInternalError: OnInternalError) {
    this.#onInternalError = onInternalError;
  }

  /** Schedules a connection until it closes. `reading` pauses and resumes it if it is not read by listeners of the socket. */
  watch(socket: Socket, reading: PausableReads = new PausableSocket(socket)): void {
    const inflow: Inflow = { socket, reading, chunks: 0, isPaused: false };
    this.#inflows.set(socket, inflow);
    socket.once("close", () => this.leave(socket));
    if (this.#isFull) pauseReads(inflow);
  }

  /** Stops scheduling a connection that no longer carries request bodies. */
  leave(socket: Socket): void {
    const inflow = this.#inflows.get(socket);
    if (inflow === undefined) return;
    this.#inflows.delete(socket);
    this.#line.delete(inflow);
    resumeReads(inflow);
  }

  /** Returns whether the connection is queued. If so, its client is not responsible for missing data. */
  isInLine(socket: Socket): boolean {
    const inflow = this.#inflows.get(socket);
    return inflow !== undefined && this.#line.has(inflow);
  }

  /** Reports the number of body chunks in one read of a connection. */
  count(socket: Socket, chunks: number): void {
    const wasFull = this.#isFull;
    this.#chunks += chunks;
    const inflow = this.#inflows.get(socket);
    if (inflow !== undefined) {
      if (inflow.chunks === 0) this.#touched.push(inflow);
      inflow.chunks += chunks;
    }
    this.#endSoon();
    if (!this.#isFull) return;
    if (!wasFull) for (const one of this.#inflows.values()) pauseReads(one);
    else if (inflow !== undefined) pauseReads(inflow);
  }

  #endSoon(): void {
    if (this.#isEndDue) return;
    this.#isEndDue = true;
    this.#sinceMs = performance.now();
    setImmediate(this.#releaseTurn);
  }

  get #isFull(): boolean {
    return this.#chunks >= TURN_CHUNKS_MAX;
  }

  readonly #releaseTurn = (): void => {
    const [touched, wasFull] = [this.#touched, this.#isFull];
    [this.#touched, this.#chunks, this.#isEndDue] = [[], 0, false];
    const share = wasFull ? Math.max(LIGHT_CHUNKS, TURN_CHUNKS_MAX / touched.length) : HEAVY_CHUNKS;
    let isRestDue = false;
    for (const inflow of touched) {
      const { socket, chunks } = inflow;
      inflow.chunks = 0;
      if (!this.#inflows.delete(socket)) continue;
      // Moves the connection to the end of the map. Connections that were not read in a full turn come first in the next one.
      this.#inflows.set(socket, inflow);
      if (chunks < Math.min(share, HEAVY_CHUNKS)) continue;
      pauseReads(inflow);
      this.#line.add(inflow);
      isRestDue = true;
    }
    if (wasFull) for (const inflow of this.#inflows.values()) if (!this.#line.has(inflow)) resumeReads(inflow);
    if (!isRestDue) return;
    const tookMs = performance.now() - this.#sinceMs;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#next, Math.min(REST_FACTOR * tookMs, REST_MS_MAX));
  };

  readonly #next = (): void => {
    this.#timer = undefined;
    const [inflow] = this.#line;
    if (inflow === undefined) return;
    // The turn is full. The next connection is resumed in the next turn, which counts from 0.
    if (this.#isFull) {
      this.#timer = setTimeout(this.#next, 1);
      return;
    }
    this.#line.delete(inflow);
    guardRun(() => resumeReads(inflow), this.#onInternalError);
    // This timer fires late only if the preceding turn had many chunks.
    if (this.#line.size > 0) this.#timer = setTimeout(this.#next, POLL_MS);
  };
}

function pauseReads(inflow: Inflow): void {
  inflow.isPaused = true;
  inflow.reading.pauseReads();
}

function resumeReads(inflow: Inflow): void {
  if (!inflow.isPaused) return;
  inflow.isPaused = false;
  inflow.reading.resumeReads();
}

/**
 * Pauses the socket. Pausing the message instead would take effect only when its buffer is full, after tens of thousands of small chunks.
 */
class PausableSocket implements PausableReads {
  readonly #socket: Socket;
  #isPaused = false;
  /** Whether the socket would be read if this class had not paused it. */
  #isDesired = true;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  pauseReads(): void {
    if (this.#isPaused) return;
    this.#isPaused = true;
    this.#isDesired = !this.#socket.isPaused();
    this.#socket.on("resume", this.#onResume);
    this.#socket.pause();
  }

  resumeReads(): void {
    this.#isPaused = false;
    this.#socket.off("resume", this.#onResume);
    if (this.#isDesired && !this.#socket.destroyed) this.#socket.resume();
  }

  /** Pauses the socket again after another component has resumed it. */
  readonly #onResume = (): void => {
    this.#isDesired = true;
    this.#socket.pause();
    // If the socket was resumed just before `pauseReads`, its `resume` event arrives only now and has started the reader, although the
    // socket is paused. The `pause` event stops the reader.
    this.#socket.emit("pause");
  };
}
