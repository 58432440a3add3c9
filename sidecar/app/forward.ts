import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { AnswerParts } from "../http/answering.ts";
import { Gathered } from "../http/gathered.ts";
import { guardRun, type OnFault } from "../http/guard.ts";
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
 * One request on its way to the app, and the answer on its way back, both streamed.
 *
 *   gathering ──a small body whole, or the first bytes of another──► sent
 *
 *   sent ──head──► answering ──end──► over
 *    │                 │
 *    │ failure         │ failure, stall, no longer valid: the client's connection is closed, because the answer that was
 *    ▼                 ▼ begun can neither be taken back nor be passed off as whole
 *   problem          over
 *
 * A client that goes away ends it from any state. Of the answer no more is kept than one write that the client has not taken,
 * and what came meanwhile up to a bound: then a client that does not read pauses the app.
 */

export interface ForwardParts {
  readonly upstream: Upstream;
  readonly ongoing: OngoingSet;
  readonly bodies: BodyParts;
  readonly answering: AnswerParts;
  readonly failing: FailureParts;
  /** For a client to take what was written to it of an answer. */
  readonly answerIdleMs: number;
  /** For an answer to a client that has ended its own direction, without a byte of it. */
  readonly halfClosedMs: number;
  readonly onFault: OnFault;
}

/** What is set on the answer; `requestId` is undefined where nothing is checked. */
export interface Extras extends Additions {
  readonly admission: Admission | undefined;
}

export interface ForwardedRequest extends Pick<UpstreamRequest, "method" | "target" | "address"> {
  readonly head: Pick<Head, "forwarded" | "hasBody" | "bodyLength">;
}

const UNKNOWN = -1;
const JOINED_BYTES_MAX = 16 * 1024;
/** From this size on, what was gathered does not wait for the end of the turn. */
const WRITTEN_BYTES = 16 * 1024;
/** With so much gathered behind a write that the client has not taken, the app is paused. */
const GATHERED_BYTES_MAX = 64 * 1024;

/** Sends a request to the app and its answer to the client. `request.head.forwarded` are the headers. */
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
  /** What the app sent and is not with the connection yet. */
  readonly #gathered = new Gathered();
  #isFlushDue = false;
  #isHeadSent = false;
  /** Bytes of the answer still to come, as its Content-Length says. */
  #left = UNKNOWN;
  #namedInConnection: ReadonlySet<string> | undefined;
  /** `performance.now()` when the write began that the client has not taken yet; 0 when there is none. */
  #writingMs = 0;
  #isPaused = false;
  /** What was written to a client that has ended its direction, and when that was last seen to grow. */
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

  /** With the app from when there is something to send: at once without a body. */
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
    // Node sends trailers only with chunks, and insists on both when they are announced.
    const announced = headers.trailer;
    if (hasContent && announced !== undefined && length === undefined && res.req.httpVersion === "1.1") {
      out.push("trailer", announced);
    }
    if (this.#parts.answering.isClosing()) res.shouldKeepAlive = false;
    this.#answered = true;
    if (reason === undefined) res.writeHead(status, out);
    else res.writeHead(status, reason, out);
    // Node keeps the head back to send it with the first data. When none comes along with it, that may be a long time.
    if (hasContent && this.#left !== 0) this.#flushSoon();
  }

  onData(chunk: Buffer): boolean {
    if (this.#left !== UNKNOWN) {
      this.#left -= chunk.length;
      if (this.#left === 0) {
        // The last byte goes out together with the end, which for a short answer means: with everything.
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
   * Writes what was gathered, or the head by itself. One write at a time is with the connection: what comes meanwhile is
   * joined, so that a client that does not read costs no more for answers in small pieces than for others.
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
    // With an error the connection is being closed, which ends the exchange.
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
   * A client that has ended its direction may have closed its socket, or wait for the answer: only writing tells. So it is
   * taken for gone when nothing could be sent to it for a while.
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
    // Node joins the head with a string into one piece, where a buffer would be a second one for the kernel to gather.
    else if (lastChunk.length <= JOINED_BYTES_MAX) this.#res.end(lastChunk.toString("latin1"), "latin1");
    else this.#res.end(lastChunk);
    // The app is done with it; only the connection waits for a client that takes its time. The next request, or the time in
    // which one may come, sets another timeout.
    const { socket } = this.#res;
    if (socket !== null && socket.writableLength > 0) socket.setTimeout(this.#parts.answerIdleMs);
    const { req } = this.#res;
    if (this.#body === null || req.complete) return;
    // The app answered before it had read everything.
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
    // Whatever ended the request, a body that is still to come no longer starts it.
    if (this.#sent === undefined) this.#body?.drop();
    this.#parts.ongoing.remove(this);
  }

  readonly #onClose = (): void => {
    if (this.#isOver) return;
    this.#leave();
    this.#sent?.abort();
  };
}
