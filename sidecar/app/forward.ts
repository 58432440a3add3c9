import { Gathered } from "../../http1/gathered.ts";
import { JOINED_BYTES_MAX, mayHaveContent, type ServerExchange } from "../../http1/server-exchange.ts";
import { isGrpc } from "../http/grpc-problem.ts";
import type { Head } from "../http/head.ts";
import { headerIn } from "../http/header-in.ts";
import { linesOf } from "../http/header-lines.ts";
import type { Admission, Ongoing, OngoingSet } from "../http/ongoing.ts";
import { type BodyParts, RequestBody } from "../http/request-body.ts";
import { type Additions, passableHead, passableTrailers } from "./answer-head.ts";
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
  /** Of calls of gRPC, whose clients may have nothing to say for long. */
  readonly callBodies: BodyParts;
  readonly failing: FailureParts;
  /** For a client to take what was written of a response. */
  readonly answerIdleMs: number;
  /** For a response to a client that has ended its own direction, while no byte of it can be sent. */
  readonly halfClosedMs: number;
}

/** Added to the response; `requestId` is undefined when checks are off. */
export interface Extras extends Additions {
  readonly admission: Admission | undefined;
}

export interface ForwardedRequest extends Pick<UpstreamRequest, "method" | "target" | "address"> {
  readonly head: Pick<Head, "forwarded" | "hasBody" | "bodyLength">;
}

const UNKNOWN = -1;
/** From this size on, gathered bytes are written without waiting for the end of the read. */
const WRITTEN_BYTES = 16 * 1024;
/** When this much is gathered while the client has not taken the last write, the app is paused. */
const GATHERED_BYTES_MAX = 64 * 1024;

/** Sends a request to the app and its response to the client. `request.head.forwarded` are the headers. */
export function forward(
  parts: ForwardParts,
  client: ServerExchange,
  { method, target, address, head }: ForwardedRequest,
  extras: Extras,
  startedMs: number,
): void {
  const bodies = isCall(client) ? parts.callBodies : parts.bodies;
  const body = head.hasBody ? new RequestBody(bodies, client, head.bodyLength) : undefined;
  const forwarding = new Forwarding(parts, client, body, extras, startedMs);
  forwarding.send({
    method,
    target,
    lines: linesFor(parts.upstream.origin, client, head),
    bodyLength: head.bodyLength,
    address,
  });
}

const isCall = ({ httpVersion, rawHeaders }: ServerExchange): boolean =>
  httpVersion === "2.0" && isGrpc(headerIn(rawHeaders, "content-type"));

class Forwarding implements AnswerReceiver, Ongoing {
  slot = -1;
  readonly startedMs: number;
  checkedMs: number;
  readonly admission: Admission | undefined;
  readonly #parts: ForwardParts;
  readonly #client: ServerExchange;
  readonly #body: RequestBody | undefined;
  readonly #extras: Extras;
  #sent: Sent | undefined;
  #isOver = false;
  #answered = false;
  /** Received from the app and not written to the connection yet. */
  readonly #gathered = new Gathered();
  /** Bytes of the response that are still to come, by its Content-Length. */
  #left = UNKNOWN;
  #namedInConnection: ReadonlySet<string> | undefined;
  /** `performance.now()` when the write began that the client has not taken yet; 0 when there is none. */
  #writingMs = 0;
  #isPaused = false;
  /** Bytes written to a client that has ended its direction, and when that number last grew. */
  #halfClosed = { bytes: -1, sinceMs: 0 };
  readonly #interim: InterimAnswers;

  constructor(
    parts: ForwardParts,
    client: ServerExchange,
    body: RequestBody | undefined,
    extras: Extras,
    startedMs: number,
  ) {
    this.#parts = parts;
    this.#client = client;
    this.#body = body;
    this.#extras = extras;
    this.admission = extras.admission;
    this.startedMs = startedMs;
    this.checkedMs = startedMs;
    this.#interim = new InterimAnswers(client);
  }

  /** Sends it to the app as soon as there is something to send: at once without a body. */
  send(request: Omit<UpstreamRequest, "body">): void {
    const client = this.#client;
    if (client.isOver) return;
    this.#parts.ongoing.add(this);
    client.onClose = this.#onClose;
    if (this.#body === undefined) this.#sendWith(request, undefined);
    else this.#body.whenThere((body) => this.#sendWith(request, body));
  }

  #sendWith(request: Omit<UpstreamRequest, "body">, body: UpstreamRequest["body"]): void {
    const { method, target, lines, bodyLength, address } = request;
    const sent = this.#parts.upstream.send({ method, target, lines, bodyLength, address, body }, this);
    this.#sent = sent;
  }

  onInterim(status: number, headers: readonly string[]): void {
    if (!this.#isOver) this.#interim.pass(status, headers);
  }

  onHead(status: number, received: string, headers: readonly string[]): void {
    const client = this.#client;
    const head = passableHead({ status, reason: received, headers }, this.#extras, client);
    if (head.kind === "unusable") {
      this.#leave();
      this.#sent?.abort();
      this.#fail("unusable", head.why);
      return;
    }
    const { reason, length, isDated } = head;
    this.#namedInConnection = head.named;
    const hasContent = mayHaveContent(client.method, status);
    let { lines } = head;
    if (hasContent && length !== undefined) this.#left = length;
    // Only chunked coding and HTTP/2 have trailers.
    else if (hasContent && head.trailer !== undefined && client.httpVersion !== "1.0")
      lines += `trailer: ${head.trailer}\r\n`;
    this.#answered = true;
    client.begin({ status, reason, lines, length, isDated });
  }

  onData(bytes: Buffer): boolean {
    if (this.#left !== UNKNOWN) {
      this.#left -= bytes.length;
      if (this.#left === 0) {
        // The last byte is sent together with the end, so a short response goes out in one piece.
        this.#finish(bytes);
        return true;
      }
    }
    this.#gathered.add(Buffer.from(bytes));
    if (this.#gathered.bytes >= WRITTEN_BYTES) this.#flush();
    this.#isPaused = this.#gathered.bytes >= GATHERED_BYTES_MAX;
    return !this.#isPaused;
  }

  /** The head is held back to be sent with the first data, but data may take a long time to come. */
  onReadEnd(): void {
    this.#flush();
  }

  /**
   * Writes the gathered bytes, or only the head. One write at a time is in progress: bytes that arrive meanwhile are
   * joined, so that for a client that does not read, many small pieces cost no more than a few large ones.
   */
  #flush(): void {
    if (this.#isOver || this.#writingMs > 0) return;
    if (this.#gathered.bytes === 0) {
      this.#client.flushHead();
      return;
    }
    this.#writingMs = performance.now();
    this.#client.write(this.#gathered.take(), this.#onWritten);
  }

  readonly #onWritten = (error?: Error | null): void => {
    this.#writingMs = 0;
    // After an error the connection is being closed, which ends the exchange.
    if (this.#isOver || error) return;
    if (this.#gathered.bytes > 0) this.#flush();
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#sent?.resume();
  };

  onEnd(trailers: readonly string[]): void {
    if (this.#isOver) return;
    this.#finish(undefined, trailers.length === 0 ? "" : passableTrailers(trailers, this.#namedInConnection));
  }

  onFailure(failure: UpstreamFailure, error: Error): void {
    if (this.#isOver) return;
    this.#leave();
    if (this.#answered) this.#client.breakOff();
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
    if (this.#answered) this.#client.breakOff();
    else this.#fail("stalled");
  }

  /**
   * A client that has ended its direction may be gone, or may wait for the response: only writing can tell. So it
   * counts as gone when nothing could be sent to it for a while.
   */
  #isClientGone(nowMs: number): boolean {
    const { socket } = this.#client;
    if (!socket.readableEnded) return false;
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
    this.#client.breakOff();
  }

  #finish(bytes?: Buffer, trailers = ""): void {
    this.#leave();
    const last = this.#gathered.bytes === 0 ? kept(bytes) : this.#joinedWith(bytes);
    // The app may respond before it has read everything; the rest is discarded by the connection.
    this.#body?.drop();
    this.#client.end(last, trailers);
  }

  #joinedWith(bytes: Buffer | undefined): Buffer {
    if (bytes !== undefined) this.#gathered.add(Buffer.from(bytes));
    return this.#gathered.take();
  }

  #fail(failure: Failure, why = ""): void {
    answerFailure(this.#parts.failing, this.#client, { failure, why }, this.#extras);
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

/** What is short is written at once, as text; what is not is copied first. */
const kept = (bytes: Buffer | undefined): Buffer | undefined =>
  bytes === undefined || bytes.length <= JOINED_BYTES_MAX ? bytes : Buffer.from(bytes);

/** The head of a request as the app gets it, in whole lines. A client of HTTP/1.0 may have named no Host. */
export function linesFor(origin: URL, client: ServerExchange, { forwarded }: Pick<Head, "forwarded">): string {
  const host = client.httpVersion === "1.0" && !forwarded.includes("host") ? `host: ${origin.host}\r\n` : "";
  return host + linesOf(forwarded);
}
