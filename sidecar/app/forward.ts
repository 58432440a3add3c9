import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { guardRun, type OnFault } from "../../http1/guard.ts";
import type { AnswerParts } from "../http/answering.ts";
import { Gathered } from "../http/gathered.ts";
import type { Head } from "../http/head.ts";
import { drainBody } from "../http/linger.ts";
import type { Admission, Ongoing, OngoingSet } from "../http/ongoing.ts";
import { type BodyParts, RequestBody } from "../http/request-body.ts";
import { type Additions, passableHead, passableTrailers } from "./answer-head.ts";
import { breakOff } from "./break-off.ts";
import { answerFailure, type Failure, type FailureParts } from "./failures.ts";
import { InterimAnswers } from "./interim-answers.ts";
import type { AnswerReceiver, Sent, Upstream, UpstreamFailure, UpstreamRequest } from "./upstream.ts";

/*
 * One request on its way to the app, and the response on its way back, both streamed.
 *
 *   gathering ──a small body whole, or the first bytes of another──► sent
 *
 *   sent ──head──► answering ──end──► over
 *    │                 │
 *    │ failure         │ failure, stall, key no longer valid: the client's connection is closed, because a response that
 *    ▼                 ▼ has begun can neither be taken back nor be presented as complete
 *   problem          over
 *
 * A client that disconnects ends it from any state. Of the response the gate keeps at most one write that the client has not taken,
 * plus what arrived meanwhile, up to a bound; beyond it, the app is paused until the client reads.
 */

export interface ForwardParts {
  readonly upstream: Upstream;
  readonly ongoing: OngoingSet;
  readonly bodies: BodyParts;
  readonly answering: AnswerParts;
  readonly failing: FailureParts;
  /** For a client to take what was written of a response. */
  readonly answerIdleMs: number;
  /** For a response to a client that has ended its own direction, while no byte of it can be sent. */
  readonly halfClosedMs: number;
  readonly onFault: OnFault;
}

/** Added to the response; `requestId` is undefined when checks are off. */
export interface Extras extends Additions {
  readonly admission: Admission | undefined;
}

export interface ForwardedRequest extends Pick<UpstreamRequest, "method" | "target" | "address"> {
  readonly head: Pick<Head, "forwarded" | "hasBody" | "bodyLength">;
}

const UNKNOWN = -1;
const JOINED_BYTES_MAX = 16 * 1024;
/** From this size on, gathered bytes are written without waiting for the end of the turn. */
const WRITTEN_BYTES = 16 * 1024;
/** When this much is gathered while the client has not taken the last write, the app is paused. */
const GATHERED_BYTES_MAX = 64 * 1024;

/** Sends a request to the app and its response to the client. `request.head.forwarded` are the headers. */
export function forward(
  parts: ForwardParts,
  req: IncomingMessage,
  res: ServerResponse,
  { method, target, address, head }: ForwardedRequest,
  extras: Extras,
  startedMs: number,
): void {
  const body = head.hasBody ? new RequestBody(parts.bodies, req, head.bodyLength) : null;
  const forwarding = new Forwarding(parts, res, body, extras, startedMs);
  forwarding.send({ method, target, headers: head.forwarded, address });
}

class Forwarding implements AnswerReceiver, Ongoing {
  slot = -1;
  readonly startedMs: number;
  checkedMs: number;
  readonly admission: Admission | undefined;
  readonly #parts: ForwardParts;
  readonly #res: ServerResponse;
  readonly #body: RequestBody | null;
  readonly #extras: Extras;
  #sent: Sent | undefined;
  #isOver = false;
  #answered = false;
  /** Received from the app and not written to the connection yet. */
  readonly #gathered = new Gathered();
  #isFlushDue = false;
  #isHeadSent = false;
  /** Bytes of the response that are still to come, by its Content-Length. */
  #left = UNKNOWN;
  #namedInConnection: ReadonlySet<string> | undefined;
  /** `performance.now()` when the write began that the client has not taken yet; 0 when there is none. */
  #writingMs = 0;
  #isPaused = false;
  /** Bytes written to a client that has ended its direction, and when that number last grew. */
  #halfClosed = { bytes: -1, sinceMs: 0 };
  readonly #interim: InterimAnswers;

  constructor(parts: ForwardParts, res: ServerResponse, body: RequestBody | null, extras: Extras, startedMs: number) {
    this.#parts = parts;
    this.#res = res;
    this.#body = body;
    this.#extras = extras;
    this.admission = extras.admission;
    this.startedMs = startedMs;
    this.checkedMs = startedMs;
    this.#interim = new InterimAnswers(res);
  }

  /** Sends it to the app as soon as there is something to send: at once without a body. */
  send(request: Omit<UpstreamRequest, "body">): void {
    const res = this.#res;
    if (res.destroyed) return;
    this.#parts.ongoing.add(this);
    res.on("close", this.#onClose);
    if (this.#body === null) this.#sendWith(request, null);
    else this.#body.whenThere((body) => this.#sendWith(request, body));
  }

  #sendWith({ method, target, headers, address }: Omit<UpstreamRequest, "body">, body: UpstreamRequest["body"]): void {
    this.#sent = this.#parts.upstream.send({ method, target, headers, address, body }, this);
  }

  onInterim(status: number, headers: IncomingHttpHeaders): void {
    if (!this.#isOver) this.#interim.pass(status, headers);
  }

  onHead(status: number, statusText: string | undefined, headers: IncomingHttpHeaders): void {
    const res = this.#res;
    const head = passableHead({ status, reason: statusText, headers }, this.#extras);
    if (head.kind === "unusable") {
      this.#leave();
      this.#sent?.abort();
      this.#fail("unusable", head.why);
      return;
    }
    const { reason, headers: out } = head;
    this.#namedInConnection = head.named;

    const hasContent = res.req.method !== "HEAD" && status !== 204 && status !== 304;
    const length = headers["content-length"];
    if (hasContent && typeof length === "string") this.#left = Number(length);
    // Node sends trailers only with chunked coding, and requires that when they are announced.
    const announced = headers.trailer;
    if (hasContent && announced !== undefined && length === undefined && res.req.httpVersion === "1.1") {
      out.push("trailer", announced);
    }
    if (this.#parts.answering.isClosing()) res.shouldKeepAlive = false;
    this.#answered = true;
    if (reason === undefined) res.writeHead(status, out);
    else res.writeHead(status, reason, out);
    // Node holds the head back to send it with the first data, which may take a long time to come.
    if (hasContent && this.#left !== 0) this.#flushSoon();
  }

  onData(chunk: Buffer): boolean {
    if (this.#left !== UNKNOWN) {
      this.#left -= chunk.length;
      if (this.#left === 0) {
        // The last byte is sent together with the end, so a short response goes out in one piece.
        this.#finish(chunk);
        return true;
      }
    }
    this.#gathered.add(chunk);
    if (this.#gathered.bytes < WRITTEN_BYTES) this.#flushSoon();
    else this.#flush();
    this.#isPaused = this.#gathered.bytes >= GATHERED_BYTES_MAX;
    return !this.#isPaused;
  }

  #flushSoon(): void {
    if (this.#isFlushDue) return;
    this.#isFlushDue = true;
    process.nextTick(guardRun, this.#flush, this.#parts.onFault);
  }

  /**
   * Writes the gathered bytes, or only the head. One write at a time is in progress: bytes that arrive meanwhile are
   * joined, so that for a client that does not read, many small pieces cost no more than a few large ones.
   */
  readonly #flush = (): void => {
    this.#isFlushDue = false;
    if (this.#isOver || this.#writingMs > 0) return;
    if (this.#gathered.bytes === 0) {
      if (!this.#isHeadSent) this.#res.flushHeaders();
      this.#isHeadSent = true;
      return;
    }
    this.#isHeadSent = true;
    this.#writingMs = performance.now();
    this.#res.write(this.#gathered.take(), this.#onWritten);
  };

  readonly #onWritten = (error?: Error | null): void => {
    this.#writingMs = 0;
    // After an error the connection is being closed, which ends the exchange.
    if (this.#isOver || error) return;
    if (this.#gathered.bytes > 0) this.#flush();
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#sent?.resume();
  };

  onEnd(trailers: IncomingHttpHeaders): void {
    if (this.#isOver) return;
    this.#res.addTrailers(passableTrailers(trailers, this.#namedInConnection));
    this.#finish();
  }

  onFailure(failure: UpstreamFailure, error: Error): void {
    if (this.#isOver) return;
    this.#leave();
    if (this.#answered) breakOff(this.#res);
    else this.#fail(failure, error.message);
  }

  breakIfStalled(nowMs: number): void {
    if (this.#isClientGone(nowMs)) {
      this.cut();
      return;
    }
    const isReadStalled = this.#writingMs > 0 && nowMs - this.#writingMs > this.#parts.answerIdleMs;
    const isSendStalled = this.#body?.isTooSlow(nowMs) === true;
    if (!isReadStalled && !isSendStalled) return;
    this.#leave();
    this.#sent?.abort();
    if (this.#answered) breakOff(this.#res);
    else this.#fail("stalled");
  }

  /**
   * A client that has ended its direction may be gone, or may wait for the response: only writing can tell. So it
   * counts as gone when nothing could be sent to it for a while.
   */
  #isClientGone(nowMs: number): boolean {
    const { socket } = this.#res;
    if (socket?.readableEnded !== true) return false;
    if (socket.bytesWritten !== this.#halfClosed.bytes) {
      this.#halfClosed = { bytes: socket.bytesWritten, sinceMs: nowMs };
      return false;
    }
    return nowMs - this.#halfClosed.sinceMs > this.#parts.halfClosedMs;
  }

  cut(): void {
    if (this.#isOver) return;
    this.#leave();
    this.#sent?.abort();
    breakOff(this.#res);
  }

  #finish(chunk?: Buffer): void {
    this.#leave();
    const lastChunk = this.#gathered.bytes === 0 ? chunk : this.#joinedWith(chunk);
    if (lastChunk === undefined) this.#res.end();
    // Node joins the head and a string into one piece; a buffer would be a second piece.
    else if (lastChunk.length <= JOINED_BYTES_MAX) this.#res.end(lastChunk.toString("latin1"), "latin1");
    else this.#res.end(lastChunk);
    // The app is done; only the connection still waits for a slow client. The next request, or the keep-alive time, sets
    // another timeout.
    const { socket } = this.#res;
    if (socket !== null && socket.writableLength > 0) socket.setTimeout(this.#parts.answerIdleMs);
    const { req } = this.#res;
    if (this.#body === null || req.complete) return;
    // The app responded before it had read everything.
    this.#body.drop();
    const { drainBytesMax: bytesMax, pieceTurns: turns } = this.#parts.answering;
    drainBody(req, { bytesMax, turns });
  }

  #joinedWith(chunk: Buffer | undefined): Buffer {
    if (chunk !== undefined) this.#gathered.add(chunk);
    return this.#gathered.take();
  }

  #fail(failure: Failure, why = ""): void {
    answerFailure(this.#parts.failing, this.#res, { failure, why }, this.#extras);
  }

  #leave(): void {
    this.#isOver = true;
    // However the request ended, a body that is still to come must not start it.
    if (this.#sent === undefined) this.#body?.drop();
    this.#parts.ongoing.remove(this);
  }

  readonly #onClose = (): void => {
    if (this.#isOver) return;
    this.#leave();
    this.#sent?.abort();
  };
}
