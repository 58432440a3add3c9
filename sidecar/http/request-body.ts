import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { BodyPace, type PaceLimits } from "./body-pace.ts";
import { Gathered } from "./gathered.ts";
import type { PieceTurns, TurnEnd } from "./piece-turns.ts";

/*
 * The body of a request on its way to the app.
 *
 *   gathering ──all of a small one──► handed over whole
 *       │
 *       └──first bytes of another───► handed over as a stream
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

export class RequestBody implements TurnEnd {
  readonly #request: IncomingMessage;
  readonly #turns: PieceTurns;
  readonly #isSmall: boolean;
  readonly #pace: BodyPace;
  #onThere: ((body: Buffer | Readable) => void) | undefined;
  /** The bytes of this turn, or all bytes so far of a small body. */
  readonly #gathered = new Gathered();
  #stream: BodyStream | undefined;
  /** The app waits for more than the client has sent. */
  #isWanted = true;

  /** `length` is the Content-Length; undefined with chunked coding. */
  constructor({ bodyLimits, pieceTurns }: BodyParts, request: IncomingMessage, length: number | undefined) {
    this.#request = request;
    this.#turns = pieceTurns;
    this.#isSmall = length !== undefined && length <= bodyLimits.wholeBytesMax;
    this.#pace = new BodyPace(bodyLimits, performance.now());
  }

  /** Starts to read. Calls `onThere` once, when there is something to send; never if the client breaks off before. */
  whenThere(onThere: (body: Buffer | Readable) => void): void {
    this.#onThere = onThere;
    const request = this.#request;
    request.on("data", this.#onData);
    request.on("end", this.#onEnd);
    request.on("error", this.#onBroken);
    request.on("close", this.#onBroken);
  }

  /** Call it about once a second. */
  isTooSlow(nowMs: number): boolean {
    return this.#pace.isTooSlow(nowMs, this.#isWanted && !this.#turns.isInLine(this.#request.socket));
  }

  /** Accepts nothing any more. The rest of the body is for others to read. */
  drop(): void {
    this.#isWanted = false;
    this.#onThere = undefined;
    this.#gathered.take();
    this.#request.off("data", this.#onData);
    this.#request.off("end", this.#onEnd);
    this.#request.off("close", this.#onBroken);
    this.#stream?.destroy();
  }

  /** The app has room for more. */
  want(): void {
    if (!this.#isWanted) this.#pace.waitFrom(performance.now());
    this.#isWanted = true;
    this.#request.resume();
  }

  endTurn(): void {
    if (this.#gathered.bytes === 0) return;
    const bytes = this.#gathered.take();
    this.#pace.moved(bytes.length, performance.now());
    const isFirst = this.#stream === undefined;
    this.#stream ??= new BodyStream(this);
    if (!this.#stream.push(bytes)) {
      this.#isWanted = false;
      this.#request.pause();
    }
    if (isFirst) this.#handOver(this.#stream);
  }

  readonly #onData = (piece: Buffer): void => {
    if (this.#isSmall) this.#pace.moved(piece.length, performance.now());
    else {
      this.#turns.count(this.#request.socket);
      if (this.#gathered.bytes === 0) this.#turns.whenOver(this);
    }
    this.#gathered.add(piece);
  };

  readonly #onEnd = (): void => {
    if (this.#isSmall || this.#stream === undefined) {
      // All of it is here before any of it was handed over.
      this.#isWanted = false;
      this.#handOver(this.#gathered.take());
      return;
    }
    this.endTurn();
    this.#isWanted = false;
    this.#stream.push(null);
  };

  readonly #onBroken = (): void => {
    if (this.#request.complete) return;
    this.#isWanted = false;
    this.#stream?.destroy(new Error("the client broke off"));
  };

  #handOver(body: Buffer | Readable): void {
    const onThere = this.#onThere;
    this.#onThere = undefined;
    onThere?.(body);
  }
}

/**
 * A separate stream between the client's message and the app, because a client library destroys the stream it is given, and
 * destroying an `IncomingMessage` closes the connection on which the response must still be sent.
 */
class BodyStream extends Readable {
  readonly #body: RequestBody;

  constructor(body: RequestBody) {
    super({ highWaterMark: 64 * 1024 });
    this.#body = body;
    // The app's client may be gone by the time the client breaks off.
    this.on("error", () => {});
  }

  override _read(): void {
    this.#body.want();
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#body.drop();
    callback(error);
  }
}
