import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { isFinalStatus, writableReason } from "./answer-head.ts";
import { pushLimitHeaders, type ShownLimit } from "./answers.ts";
import { guardRun, type OnFault } from "./guard.ts";
import type { Admission, Ongoing, OngoingSet } from "./ongoing.ts";
import { type BodyParts, drainBody, type RequestBody } from "./request-body.ts";
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
 * A client that goes away ends it from any state. The answer is never buffered: a client that does not read pauses the app.
 */

export interface ForwardParts extends BodyParts {
  readonly upstream: Upstream;
  readonly ongoing: OngoingSet;
  readonly bodyIdleMs: number;
  readonly drainBytesMax: number;
  readonly isClosing: () => boolean;
  readonly onFault: OnFault;
  /** Answers for an app that did not. */
  readonly onUpstreamFailure: (
    res: ServerResponse,
    failure: UpstreamFailure | "stalled",
    requestId: string | undefined,
    shown: ShownLimit | undefined,
  ) => void;
}

export interface Extras {
  /** Set on the answer; undefined where nothing is checked. */
  readonly requestId: string | undefined;
  readonly shown: ShownLimit | undefined;
  readonly admission: Admission | undefined;
}

/** What is not passed back, or only under conditions (RFC 9110, 7.6.1). */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "proxy-authenticate",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);
const LIMIT_HEADERS: ReadonlySet<string> = new Set(["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"]);
/** RFC 9110, 6.5.1: these say how a message is read, and are not believed when they come after it. */
const NEVER_TRAILERS: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  "content-length",
  "host",
  "content-type",
  "set-cookie",
]);
const UNKNOWN = -1;
const JOINED_BYTES_MAX = 16 * 1024;

export class Forwarding implements AnswerReceiver, Ongoing {
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
  #hasData = false;
  /** Bytes of the answer still to come, as its Content-Length says. */
  #left = UNKNOWN;
  #waitsForDrain = false;
  #pausedMs = 0;

  constructor(parts: ForwardParts, res: ServerResponse, body: RequestBody | null, extras: Extras, startedMs: number) {
    this.#parts = parts;
    this.#res = res;
    this.#body = body;
    this.#extras = extras;
    this.admission = extras.admission;
    this.startedMs = startedMs;
    this.checkedMs = startedMs;
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

  onHead(status: number, statusText: string | undefined, headers: IncomingHttpHeaders): void {
    if (!isFinalStatus(status)) {
      this.#leave();
      this.#sent?.abort();
      this.#fail("unusable");
      return;
    }
    const { requestId, shown } = this.#extras;
    const res = this.#res;
    const out: string[] = [];
    const named = namedInConnection(headers.connection);
    for (const name in headers) {
      const value = headers[name];
      if (value === undefined || HOP_BY_HOP.has(name) || named?.has(name)) continue;
      if (shown !== undefined && LIMIT_HEADERS.has(name)) continue;
      if (typeof value === "string") out.push(name, value);
      else for (const one of value) out.push(name, one);
    }
    if (requestId !== undefined && headers["x-request-id"] === undefined) out.push("x-request-id", requestId);
    if (shown !== undefined) pushLimitHeaders(out, shown);

    const hasContent = res.req.method !== "HEAD" && status !== 204 && status !== 304;
    const length = headers["content-length"];
    if (hasContent && typeof length === "string") this.#left = Number(length);
    // Node sends trailers only with chunks, and insists on both when they are announced.
    const announced = headers.trailer;
    if (hasContent && announced !== undefined && length === undefined && res.req.httpVersion === "1.1") {
      out.push("trailer", announced);
    }
    if (this.#parts.isClosing()) res.shouldKeepAlive = false;
    this.#answered = true;
    const reason = writableReason(statusText);
    if (reason === undefined) res.writeHead(status, out);
    else res.writeHead(status, reason, out);
    // Node keeps the head back to send it with the first data. When none comes along with it, that may be a long time.
    if (hasContent && this.#left !== 0) process.nextTick(guardRun, this.#flushHead, this.#parts.onFault);
  }

  /** Sends the head by itself, unless data came along with it. */
  readonly #flushHead = (): void => {
    if (!this.#hasData && !this.#isOver) this.#res.flushHeaders();
  };

  onData(chunk: Buffer): boolean {
    const res = this.#res;
    this.#hasData = true;
    if (this.#left !== UNKNOWN) {
      this.#left -= chunk.length;
      if (this.#left === 0) {
        // The last byte goes out together with the end, which for a short answer means: with everything.
        this.#finish(chunk);
        return true;
      }
    }
    if (res.write(chunk)) return true;
    this.#pausedMs = performance.now();
    if (!this.#waitsForDrain) {
      this.#waitsForDrain = true;
      res.on("drain", () => {
        this.#pausedMs = 0;
        this.#sent?.resume();
      });
    }
    return false;
  }

  onEnd(trailers: IncomingHttpHeaders): void {
    if (this.#isOver) return;
    for (const name in trailers) {
      const value = trailers[name];
      if (value === undefined || NEVER_TRAILERS.has(name)) continue;
      this.#res.addTrailers({ [name]: typeof value === "string" ? value : value.join(", ") });
    }
    this.#finish();
  }

  onFailure(failure: UpstreamFailure): void {
    if (this.#isOver) return;
    this.#leave();
    if (this.#answered) this.#res.destroy();
    else this.#fail(failure);
  }

  breakIfStalled(nowMs: number): void {
    const idleMs = this.#parts.bodyIdleMs;
    const isReadStalled = this.#pausedMs > 0 && nowMs - this.#pausedMs > idleMs;
    const isSendStalled = this.#body?.isTooSlow(nowMs) === true;
    if (!isReadStalled && !isSendStalled) return;
    this.#leave();
    this.#sent?.abort();
    if (this.#answered) this.#res.destroy();
    else this.#fail("stalled");
  }

  cut(): void {
    if (this.#isOver) return;
    this.#leave();
    this.#sent?.abort();
    this.#res.destroy();
  }

  #finish(lastChunk?: Buffer): void {
    this.#leave();
    if (lastChunk === undefined) this.#res.end();
    // Node joins the head with a string into one piece, where a buffer would be a second one for the kernel to gather.
    else if (lastChunk.length <= JOINED_BYTES_MAX) this.#res.end(lastChunk.toString("latin1"), "latin1");
    else this.#res.end(lastChunk);
    const { req } = this.#res;
    if (this.#body === null || req.complete) return;
    // The app answered before it had read everything.
    this.#body.drop();
    drainBody(req, this.#parts.drainBytesMax);
  }

  #fail(failure: UpstreamFailure | "stalled"): void {
    const { requestId, shown } = this.#extras;
    this.#parts.onUpstreamFailure(this.#res, failure, requestId, shown);
  }

  #leave(): void {
    this.#isOver = true;
    this.#pausedMs = 0;
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

function namedInConnection(connection: string | undefined): ReadonlySet<string> | undefined {
  if (connection === undefined || connection === "keep-alive" || connection === "close") return undefined;
  return new Set(connection.split(",").map((token) => token.trim().toLowerCase()));
}
