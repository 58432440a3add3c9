import type { IncomingHttpHeaders } from "node:http";
import type { Readable } from "node:stream";
import type { Dispatcher } from "undici";
// Only the pool: the package's entry also loads fetch, WebSocket and caches, which costs each pod 50 ms and 6 MB (decision 0013).
import Pool from "undici/lib/dispatcher/pool.js";
import { type PlaceSeeker, Places } from "../../edge/places.ts";
import type { OnFault } from "../../http1/guard.ts";
import { type AppConnector, openAppConnector } from "./app-connection.ts";
import { AppWatch } from "./app-watch.ts";

/*
 * The connection to the app. The rest of the sidecar uses only this interface, so that the HTTP client behind it can
 * be replaced. A request is sent once and never repeated.
 */

export interface UpstreamRequest {
  readonly method: string;
  /** Path and query, in the bytes that were checked. */
  readonly target: string;
  /** Names and values alternating. Content-Length unchanged, no hop-by-hop headers. */
  readonly headers: string[];
  /** A whole body, or one that has begun to arrive, because a request takes a place even while its body does not. */
  readonly body: Buffer | Readable | null;
  /** The address for which places at the app are counted. */
  readonly address: string;
}

/**
 * `unreachable`: no connection, or it broke before the head of the response. `timeout`: no response in time.
 * `unusable`: there is a response, but it cannot be passed on. `busy`: no place at the app became free, and nothing was
 * sent. `aborted`: the gate gave up.
 */
export type UpstreamFailure = "unreachable" | "unusable" | "timeout" | "busy" | "aborted";

/** Receives the response: `onInterim`, one `onHead`, then data, then one `onEnd`; or at any point one `onFailure`, and nothing after it. */
export interface AnswerReceiver {
  /** An informational response (1xx). There may be any number before the head. */
  onInterim(status: number, headers: IncomingHttpHeaders): void;
  /** `status` is any three-digit number; `headers` have lower-case names. */
  onHead(status: number, statusText: string | undefined, headers: IncomingHttpHeaders): void;
  /** false: pause, until `resume` is called. */
  onData(chunk: Buffer): boolean;
  onEnd(trailers: IncomingHttpHeaders): void;
  onFailure(failure: UpstreamFailure, error: Error): void;
}

export interface Sent {
  resume(): void;
  /** Gives up: the connection to the app is closed. Does nothing when the exchange is over. */
  abort(): void;
}

export interface Upstream {
  readonly origin: URL;
  send(request: UpstreamRequest, receiver: AnswerReceiver): Sent;
  readonly places: Places;
  /** Whether the app takes connections. */
  readonly watch: AppWatch;
  /** Does not wait: exchanges in flight are aborted. */
  close(): Promise<void>;
}

/** Larger than for a client's head: an app may set many cookies, and policies are long. */
export const ANSWER_HEAD_BYTES_MAX = 64 * 1024;

export interface UpstreamOptions {
  /** To connect to the app; and to wait for a place at it. */
  readonly connectMs: number;
  /** From the end of the request to the head of the app's response. */
  readonly headersMs: number;
  /** Without a byte of the app's response while the client waits for it. */
  readonly bodyIdleMs: number;
  readonly headBytesMax: number;
  readonly connectionsMax: number;
  /** The part of the connections that one client address alone may hold. */
  readonly addressShare: number;
  readonly onFault: OnFault;
}

export function openUpstream(origin: string, options: UpstreamOptions): Upstream {
  return new PooledUpstream(new URL(origin), options);
}

/**
 * The app has at most `connectionsMax` requests. The others wait in our own queue, not in the pool's, where
 * they would have no deadline and could not be removed.
 */
class PooledUpstream implements Upstream {
  readonly origin: URL;
  readonly onFault: OnFault;
  readonly pool: Dispatcher;
  readonly places: Places;
  readonly watch: AppWatch;
  readonly #connector: AppConnector;

  constructor(origin: URL, options: UpstreamOptions) {
    const { connectMs, headBytesMax, connectionsMax, addressShare, onFault } = options;
    this.origin = origin;
    this.onFault = onFault;
    this.places = new Places({ max: connectionsMax, share: addressShare, waitMs: connectMs });
    this.watch = new AppWatch(origin, onFault);
    this.#connector = openAppConnector({ timeoutMs: connectMs, watch: this.watch, onFault });
    this.pool = new Pool(origin.origin, {
      // One request may start a moment before the connection of the previous one is free.
      connections: connectionsMax,
      connect: this.#connector.connect,
      headersTimeout: options.headersMs,
      bodyTimeout: options.bodyIdleMs,
      maxHeaderSize: Math.max(headBytesMax, ANSWER_HEAD_BYTES_MAX),
      pipelining: 1,
      // An app that closes idle connections after 5 s (the default of Node's server) must not do so during a request.
      keepAliveTimeout: 4_000,
      keepAliveMaxTimeout: 600_000,
      keepAliveTimeoutThreshold: 1_000,
    });
  }

  send(request: UpstreamRequest, receiver: AnswerReceiver): Sent {
    const sent = new PoolRequest(this, request, receiver);
    this.places.seek(sent);
    return sent;
  }

  async close(): Promise<void> {
    this.places.close();
    this.watch.close();
    await this.pool.destroy();
    this.#connector.close();
  }
}

/** Error codes of undici. Any other code means that the app was unreachable or broke off. */
const FAILURES: Readonly<Record<string, UpstreamFailure>> = {
  UND_ERR_CONNECT_TIMEOUT: "timeout",
  UND_ERR_HEADERS_TIMEOUT: "timeout",
  UND_ERR_BODY_TIMEOUT: "timeout",
  UND_ERR_HEADERS_OVERFLOW: "unusable",
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: "unusable",
};

/** Returns what an error of a client library means. */
export function failureOf(error: Error): UpstreamFailure {
  // For invalid HTTP, undici sets only a name, and Node a code of llhttp.
  const { name, code = "" } = error as { name: string; code?: string };
  if (name === "HTTPParserError" || code.startsWith("HPE_")) return "unusable";
  return FAILURES[code] ?? "unreachable";
}

class PoolRequest implements Sent, PlaceSeeker, Dispatcher.DispatchHandler {
  readonly address: string;
  readonly #upstream: PooledUpstream;
  readonly #receiver: AnswerReceiver;
  /** undefined once it is handed to undici, which then holds what it needs. */
  #request: UpstreamRequest | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #isAborted = false;
  #isOver = false;

  constructor(upstream: PooledUpstream, request: UpstreamRequest, receiver: AnswerReceiver) {
    this.#upstream = upstream;
    this.#request = request;
    this.#receiver = receiver;
    this.address = request.address;
  }

  onPlace(): void {
    const { method, target, headers, body } = this.#request as UpstreamRequest;
    this.#request = undefined;
    this.#upstream.pool.dispatch({ method: method as Dispatcher.HttpMethod, path: target, headers, body }, this);
  }

  onNoPlace(): void {
    this.fail("busy", new Error("no place at the app became free"));
  }

  fail(failure: UpstreamFailure, error: Error): void {
    this.#guard(() => this.#receiver.onFailure(failure, error));
  }

  resume(): void {
    this.#controller?.resume();
  }

  abort(): void {
    if (this.#isAborted) return;
    this.#isAborted = true;
    const error = new Error("given up");
    if (this.#upstream.places.leave(this)) this.fail("aborted", error);
    else this.#controller?.abort(error);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    // Given up while its connection was made.
    if (this.#isAborted) controller.abort(new Error("given up"));
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
    statusText?: string,
  ): void {
    // After a 101 that was not requested there is no final response, and no further interim one.
    if (status >= 100 && status < 200 && status !== 101) this.#guard(() => this.#receiver.onInterim(status, headers));
    else this.#guard(() => this.#receiver.onHead(status, statusText, headers));
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#guard(() => {
      if (!this.#receiver.onData(chunk)) controller.pause();
    });
  }

  onResponseEnd(_controller: Dispatcher.DispatchController, trailers: IncomingHttpHeaders): void {
    this.#release();
    this.#guard(() => this.#receiver.onEnd(trailers));
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#release();
    this.fail(this.#isAborted ? "aborted" : failureOf(error), error);
  }

  /** What the receiver throws is our own fault, not the app's: it ends this exchange. */
  #guard(receive: () => void): void {
    try {
      receive();
    } catch (error) {
      this.#upstream.onFault(error);
      this.#controller?.abort(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #release(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#upstream.places.release(this.address);
  }
}
