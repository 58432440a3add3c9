import { Gathered } from "../../http1/gathered.ts";
import type { BodyReceiver, ServerExchange } from "../../http1/server-exchange.ts";
import { BodyPace, type PaceLimits } from "./body-pace.ts";

import type { PieceTurns } from "./piece-turns.ts";

/*
 * The body of a request on its way to the app.
 *
 *   gathering ──all of a small one──► handed over whole
 *       │
 *       └──first bytes of another───► handed over ──flowTo──► flowing
 *
 * Nothing is handed over before there is something to send: a head that announces a body costs its sender nothing, and
 * handing over takes a place at the app.
 */

export interface BodyLimits extends PaceLimits {
  /** A body whose Content-Length is no more than this is gathered whole. */
  readonly wholeBytesMax: number;
}

export interface BodyParts {
  readonly bodyLimits: BodyLimits;
  readonly pieceTurns: PieceTurns;
}

/** Where a body flows to. */
export interface BodySink {
  /** false: no more, until `want` is called. */
  write(bytes: Buffer): boolean;
  end(): void;
}

/** What waits for a place at the app keeps no more than this and one read. */
export const WAITING_BODY_BYTES_MAX = 64 * 1024;

export class RequestBody implements BodyReceiver {
  readonly #exchange: ServerExchange;
  readonly #turns: PieceTurns;
  readonly #isSmall: boolean;
  readonly #pace: BodyPace;
  #onThere: ((body: Buffer | RequestBody) => void) | undefined;
  /** The bytes that wait to be handed over, or for a sink. */
  readonly #gathered = new Gathered();
  #sink: BodySink | undefined;
  #hasEnded = false;
  #isDropped = false;
  /** The app waits for more than the client has sent. */
  #isWanted = true;

  /** `length` is the Content-Length; undefined with chunked coding. */
  constructor({ bodyLimits, pieceTurns }: BodyParts, exchange: ServerExchange, length: number | undefined) {
    this.#exchange = exchange;
    this.#turns = pieceTurns;
    this.#isSmall = length !== undefined && length <= bodyLimits.wholeBytesMax;
    this.#pace = new BodyPace(bodyLimits, performance.now());
  }

  /** Starts to read. Calls `onThere` once, when there is something to send; never if the client breaks off before. */
  whenThere(onThere: (body: Buffer | RequestBody) => void): void {
    this.#onThere = onThere;
    this.#exchange.read(this);
  }

  /** Writes to the sink what is there, and from then on what comes. */
  flowTo(sink: BodySink): void {
    if (this.#isDropped) return;
    this.#sink = sink;
    if (this.#gathered.bytes > 0) this.#give(sink, this.#gathered.take());
    if (this.#hasEnded) sink.end();
  }

  /** Call it about once a second. */
  isTooSlow(nowMs: number): boolean {
    return this.#pace.isTooSlow(nowMs, this.#isWanted && !this.#turns.isInLine(this.#exchange.socket));
  }

  /** Accepts nothing any more. The rest of the body is for others to read. */
  drop(): void {
    this.#isDropped = true;
    this.#isWanted = false;
    this.#onThere = undefined;
    this.#sink = undefined;
    this.#gathered.take();
  }

  /** The sink has room for more. */
  want(): void {
    if (this.#isDropped || this.#hasEnded) return;
    if (!this.#isWanted) this.#pace.waitFrom(performance.now());
    this.#isWanted = true;
    this.#exchange.resume();
  }

  onPiece(bytes: Buffer, chunks: number, isLast: boolean): void {
    if (!this.#isSmall) this.#turns.count(this.#exchange.socket, chunks);
    if (this.#isDropped) return;
    this.#pace.moved(bytes.length, performance.now());
    if (this.#sink !== undefined) {
      this.#give(this.#sink, bytes);
      return;
    }
    this.#gathered.add(bytes);
    if (this.#isSmall) return;
    if (this.#gathered.bytes > WAITING_BODY_BYTES_MAX) this.#stopReading();
    // All of a body that came at once is handed over whole.
    if (this.#onThere !== undefined && !isLast) this.#handOver(this);
  }

  onEnd(): void {
    if (this.#isDropped) return;
    this.#hasEnded = true;
    this.#isWanted = false;
    // All of it is here before any of it was handed over.
    if (this.#onThere !== undefined) this.#handOver(this.#gathered.take());
    else this.#sink?.end();
  }

  #give(sink: BodySink, bytes: Buffer): void {
    // Reading may have stopped while the body waited for its sink. A write that was taken at once is followed by no `want`, however large it was.
    if (sink.write(bytes)) this.want();
    else this.#stopReading();
  }

  #stopReading(): void {
    this.#isWanted = false;
    this.#exchange.pause();
  }

  #handOver(body: Buffer | RequestBody): void {
    const onThere = this.#onThere;
    this.#onThere = undefined;
    onThere?.(body);
  }
}
