import type { IncomingHttpHeaders } from "node:http";
import type { Readable } from "node:stream";
import type { Dispatcher } from "undici";
// The pool alone: the package's entry loads fetch, WebSocket and caches too, which costs each pod 50 ms and 8 MB.
import Pool from "undici/lib/dispatcher/pool.js";
import type { Timeouts } from "./config.ts";

/*
 * The way to the app. Everything the rest of the sidecar knows of it is this interface, so that the client behind it can
 * be exchanged. A request is sent once; nothing is ever sent again.
 */

export interface UpstreamRequest {
  readonly method: string;
  /** Path and query, in the bytes that were checked. */
  readonly target: string;
  /** Names and values by turns. Content-Length as it is, no hop-by-hop headers. */
  readonly headers: string[];
  readonly body: Readable | null;
}

/**
 * `unreachable`: no connection, or it broke before the head of the answer. `timeout`: none came in time.
 * `aborted`: we gave up ourselves.
 */
export type UpstreamFailure = "unreachable" | "timeout" | "aborted";

/** Who takes the answer: one `onHead`, then data, then one `onEnd`; or at any point one `onFailure`, and nothing after it. */
export interface AnswerReceiver {
  /** `headers` have lower-case names. Informational answers (1xx) are not passed on. */
  onHead(status: number, statusText: string | undefined, headers: IncomingHttpHeaders): void;
  /** false: pause, until `resume` is called. */
  onData(chunk: Buffer): boolean;
  onEnd(trailers: IncomingHttpHeaders): void;
  onFailure(failure: UpstreamFailure, error: Error): void;
}

export interface Sent {
  resume(): void;
  /** Gives up: the connection to the app is closed. Harmless when all is over. */
  abort(): void;
}

export interface Upstream {
  readonly origin: URL;
  send(request: UpstreamRequest, receiver: AnswerReceiver): Sent;
  /** Waits for nothing: what is under way is broken off. */
  close(): Promise<void>;
}

export function openUpstream(origin: string, timeouts: Timeouts, headBytesMax: number): Upstream {
  const url = new URL(origin);
  const pool = new Pool(url.origin, {
    connectTimeout: timeouts.connectMs,
    headersTimeout: timeouts.headersMs,
    bodyTimeout: timeouts.bodyIdleMs,
    maxHeaderSize: Math.max(headBytesMax, 64 * 1024),
    pipelining: 1,
    // An app that closes idle connections after 5 s (the default of Node's server) must not do so under a request.
    keepAliveTimeout: 4_000,
    keepAliveMaxTimeout: 600_000,
    keepAliveTimeoutThreshold: 1_000,
  });
  return {
    origin: url,
    send(request, receiver) {
      const sent = new PoolRequest(receiver);
      const { method, target, headers, body } = request;
      pool.dispatch({ method: method as Dispatcher.HttpMethod, path: target, headers, body }, sent);
      return sent;
    },
    close: () => pool.destroy(),
  };
}

/** Codes of undici; whatever is not named here means that the app could not be reached or broke off. */
const TIMEOUT_CODES: ReadonlySet<string> = new Set([
  "UND_ERR_CONNECT_TIMEOUT",
  "UND_ERR_HEADERS_TIMEOUT",
  "UND_ERR_BODY_TIMEOUT",
]);

class PoolRequest implements Sent, Dispatcher.DispatchHandler {
  readonly #receiver: AnswerReceiver;
  #controller: Dispatcher.DispatchController | undefined;
  #isAborted = false;

  constructor(receiver: AnswerReceiver) {
    this.#receiver = receiver;
  }

  resume(): void {
    this.#controller?.resume();
  }

  abort(): void {
    if (this.#isAborted) return;
    this.#isAborted = true;
    this.#controller?.abort(new Error("given up"));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    // Given up while it waited for a connection.
    if (this.#isAborted) controller.abort(new Error("given up"));
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
    statusText?: string,
  ): void {
    if (status >= 200) this.#receiver.onHead(status, statusText, headers);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#receiver.onData(chunk)) controller.pause();
  }

  onResponseEnd(_controller: Dispatcher.DispatchController, trailers: IncomingHttpHeaders): void {
    this.#receiver.onEnd(trailers);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    const code = (error as { code?: string }).code ?? "";
    const failure = this.#isAborted ? "aborted" : TIMEOUT_CODES.has(code) ? "timeout" : "unreachable";
    this.#receiver.onFailure(failure, error);
  }
}
