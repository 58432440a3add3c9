import { ChunkBuffer } from "../../http/http1/chunk-buffer.ts";
import { JOINED_BYTES_MAX, mayHaveContent, type ServerExchange } from "../../http/http1/server-exchange.ts";
import { isGrpc } from "../http/grpc-problem.ts";
import type { Head } from "../http/head.ts";
import { headerIn } from "../http/header-in.ts";
import { linesOf } from "../http/header-lines.ts";
import type { Admission, InFlight, InFlightSet } from "../http/in-flight.ts";
import { type BodyDeps, RequestBody } from "../http/request-body.ts";
import { answerFailure, type Failure, type FailureDeps } from "./failures.ts";
import { InterimResponses } from "./interim-responses.ts";
import { type Additions, passableHead, passableTrailers } from "./response-head.ts";
import type { ResponseReceiver, Sent, Upstream, UpstreamFailure, UpstreamRequest } from "./upstream.ts";

/*
 * Streams one request to the app, and the response back to the client.
 *
 *   buffering ──a small body complete, or the first bytes of another──► sent
 *
 *   sent ──head──► responding ──end──► over
 *    │                 │
 *    │ failure         │ failure, stall, key no longer valid: the client's connection is closed, because a response that
 *    ▼                 ▼ has begun can neither be withdrawn nor be presented as complete
 *   problem          over
 *
 * If the client disconnects, the exchange ends, whatever its state. The gate buffers at most one write that the client has not read, and a
 * limited amount of data that arrives in the meantime. At this limit, reading from the app is paused until the client reads.
 */

export interface ForwardDeps {
  readonly upstream: Upstream;
  readonly inFlight: InFlightSet;
  readonly bodies: BodyDeps;
  /** Dependencies for forwarding the bodies of gRPC calls, which may be idle for up to the stream idle timeout. */
  readonly callBodies: BodyDeps;
  readonly failing: FailureDeps;
  /** Maximum time for a client to read the written part of a response. */
  readonly responseReadMs: number;
  /** Maximum time without progress of a response to a client that has half-closed its connection. */
  readonly halfClosedMs: number;
}

/** Data that the gate adds to the response. `requestId` is `undefined` if checks are disabled. */
export interface Extras extends Additions {
  readonly admission: Admission | undefined;
}

export interface ForwardedRequest extends Pick<UpstreamRequest, "method" | "target" | "address"> {
  readonly head: Pick<Head, "forwarded" | "hasBody" | "bodyLength">;
}

const UNKNOWN = -1;
/** Number of buffered bytes at which data is written immediately instead of at the end of the current read. */
const WRITTEN_BYTES = 16 * 1024;
/** Number of buffered bytes at which reading from the app pauses while the client has not yet read the last write. */
const GATHERED_BYTES_MAX = 64 * 1024;

/** Sends a request with the headers `request.head.forwarded` to the app, and the app's response to the client. */
export function forward(
  deps: ForwardDeps,
  client: ServerExchange,
  { method, target, address, head }: ForwardedRequest,
  extras: Extras,
  startedMs: number,
): void {
  const bodies = isCall(client) ? deps.callBodies : deps.bodies;
  const body = head.hasBody ? new RequestBody(bodies, client, head.bodyLength) : undefined;
  const forwarding = new Forwarding(deps, client, body, extras, startedMs);
  forwarding.send({
    method,
    target,
    lines: linesFor(deps.upstream.origin, client, head),
    bodyLength: head.bodyLength,
    address,
  });
}

const isCall = ({ httpVersion, rawHeaders }: ServerExchange): boolean =>
  httpVersion === "2.0" && isGrpc(headerIn(rawHeaders, "content-type"));

class Forwarding implements ResponseReceiver, InFlight {
  slot = -1;
  readonly startedMs: number;
  checkedMs: number;
  readonly admission: Admission | undefined;
  readonly #parts: ForwardDeps;
  readonly #client: ServerExchange;
  readonly #body: RequestBody | undefined;
  readonly #extras: Extras;
  #sent: Sent | undefined;
  #isOver = false;
  #answered = false;
  /** Data from the app that is not yet written to the client's connection. */
  readonly #buffered = new ChunkBuffer();
  /** Number of remaining response bytes, according to its Content-Length. */
  #left = UNKNOWN;
  #namedInConnection: ReadonlySet<string> | undefined;
  /** Start of the write that the client has not read yet, as `performance.now()`; 0 if no write is pending. */
  #writingMs = 0;
  #isPaused = false;
  /** Number of bytes sent to a client that has half-closed its connection, and the time at which this number last grew. */
  #halfClosed = { bytes: -1, sinceMs: 0 };
  readonly #interim: InterimResponses;

  constructor(
    deps: ForwardDeps,
    client: ServerExchange,
    body: RequestBody | undefined,
    extras: Extras,
    startedMs: number,
  ) {
    this.#parts = deps;
    this.#client = client;
    this.#body = body;
    this.#extras = extras;
    this.admission = extras.admission;
    this.startedMs = startedMs;
    this.checkedMs = startedMs;
    this.#interim = new InterimResponses(client);
  }

  /** Sends the request as soon as it has data to send; a request without a body is sent immediately. */
  send(request: Omit<UpstreamRequest, "body">): void {
    const client = this.#client;
    if (client.isOver) return;
    this.#parts.inFlight.add(this);
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
    // Trailers require chunked coding or HTTP/2.
    else if (hasContent && head.trailer !== undefined && client.httpVersion !== "1.0")
      lines += `trailer: ${head.trailer}\r\n`;
    this.#answered = true;
    client.begin({ status, reason, lines, length, isDated });
  }

  onData(bytes: Buffer): boolean {
    if (this.#left !== UNKNOWN) {
      this.#left -= bytes.length;
      if (this.#left === 0) {
        // Sends the last bytes together with the end, so that a short response is one write.
        this.#finish(bytes);
        return true;
      }
    }
    this.#buffered.add(Buffer.from(bytes));
    if (this.#buffered.bytes >= WRITTEN_BYTES) this.#flush();
    this.#isPaused = this.#buffered.bytes >= GATHERED_BYTES_MAX;
    return !this.#isPaused;
  }

  /** Sends the head now, because the data may follow much later. */
  onReadEnd(): void {
    this.#flush();
  }

  /**
   * Writes the buffered bytes, or only the head. One write is in progress at a time, and bytes that arrive during a write are joined, so
   * that many small chunks for a client that does not read cost no more than a few large ones.
   */
  #flush(): void {
    if (this.#isOver || this.#writingMs > 0) return;
    if (this.#buffered.bytes === 0) {
      this.#client.flushHead();
      return;
    }
    this.#writingMs = performance.now();
    this.#client.write(this.#buffered.take(), this.#onWritten);
  }

  readonly #onWritten = (error?: Error | null): void => {
    this.#writingMs = 0;
    // On an error the connection closes, which ends the exchange.
    if (this.#isOver || error) return;
    if (this.#buffered.bytes > 0) this.#flush();
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

  abortIfStalled(nowMs: number): void {
    if (this.#hasClientDisconnected(nowMs)) {
      this.cut();
      return;
    }
    const isReadStalled = this.#writingMs > 0 && nowMs - this.#writingMs > this.#parts.responseReadMs;
    const isSendStalled = this.#body?.isTooSlow(nowMs) === true;
    if (!isReadStalled && !isSendStalled) return;
    this.#leave();
    this.#sent?.abort();
    if (this.#answered) this.#client.breakOff();
    else this.#fail("stalled");
  }

  /**
   * Returns true if the client has half-closed its connection and no byte could be sent to it for `halfClosedMs`. Such a client may have
   * disconnected or still wait for the response; only writing to it shows which.
   */
  #hasClientDisconnected(nowMs: number): boolean {
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
    const last = this.#buffered.bytes === 0 ? kept(bytes) : this.#joinedWith(bytes);
    // The app may respond before it has read the complete request; the connection then discards the rest of the request.
    this.#body?.drop();
    this.#client.end(last, trailers);
  }

  #joinedWith(bytes: Buffer | undefined): Buffer {
    if (bytes !== undefined) this.#buffered.add(Buffer.from(bytes));
    return this.#buffered.take();
  }

  #fail(failure: Failure, why = ""): void {
    answerFailure(this.#parts.failing, this.#client, { failure, why }, this.#extras);
  }

  #leave(): void {
    this.#isOver = true;
    // The exchange is over, so body data that still arrives must not start the request.
    if (this.#sent === undefined) this.#body?.drop();
    this.#parts.inFlight.remove(this);
  }

  readonly #onClose = (): void => {
    if (this.#isOver) return;
    this.#leave();
    this.#sent?.abort();
  };
}

/** Returns bytes that stay valid after the read: short data is converted to text immediately, longer data is copied. */
const kept = (bytes: Buffer | undefined): Buffer | undefined =>
  bytes === undefined || bytes.length <= JOINED_BYTES_MAX ? bytes : Buffer.from(bytes);

/** Returns the request headers for the app as header lines. Adds a Host if an HTTP/1.0 client has sent none. */
export function linesFor(origin: URL, client: ServerExchange, { forwarded }: Pick<Head, "forwarded">): string {
  const host = client.httpVersion === "1.0" && !forwarded.includes("host") ? `host: ${origin.host}\r\n` : "";
  return host + linesOf(forwarded);
}
