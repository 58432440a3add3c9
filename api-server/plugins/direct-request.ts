import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { performance } from "node:perf_hooks";
import { httpDate } from "../../http/http1/http-date.ts";
import type { ApiReply, ApiRequest, ApiRoute } from "./api-request.ts";
import type { DirectHeaders } from "./direct-head.ts";
import { JSON_TYPE } from "./served.ts";

/** Route of a procedure that is served directly. */
export interface DirectRoute extends ApiRoute {
  readonly url: string;
  readonly serve: (request: ApiRequest, reply: ApiReply) => void;
}

/** The members of a connection that its requests use. */
export interface DirectOwner {
  readonly socket: Socket;
  /** Returns the client address, given the value of `X-Forwarded-For`. */
  addressFor(forwardedFor: string | undefined): string;
  /** Headers for a response that keeps the connection open; `undefined` if the connection closes after the current response. */
  readonly keepAliveLines: string | undefined;
  /** Sends a complete response. `isLast`: the connection closes after it. */
  respond(text: string, encoding: "latin1" | "utf8", isLast: boolean): void;
}

/** A complete request together with its response. Both are one object, so that a verification allocates only one. */
export class DirectRequest implements ApiRequest, ApiReply {
  readonly id: string;
  readonly headers: DirectHeaders & NodeJS.Dict<string>;
  readonly body: Buffer;
  readonly startedMs = performance.now();
  readonly routeOptions: DirectRoute;

  readonly #owner: DirectOwner;
  #status = 200;
  #contentType = JSON_TYPE;
  #lines = "";
  #isLast = false;
  #isOver = false;
  #gone: AbortController | undefined;

  constructor(owner: DirectOwner, of: { id: string; headers: DirectHeaders; body: Buffer; route: DirectRoute }) {
    this.#owner = owner;
    this.id = of.id;
    this.headers = of.headers as DirectHeaders & NodeJS.Dict<string>;
    this.body = of.body;
    this.routeOptions = of.route;
  }

  get url(): string {
    return this.routeOptions.url;
  }

  get ip(): string {
    return this.#owner.addressFor(this.headers["x-forwarded-for"]);
  }

  get query(): undefined {
    return undefined;
  }

  get params(): undefined {
    return undefined;
  }

  get discarded(): undefined {
    return undefined;
  }

  /** Returns `undefined`, because directly served bodies are small and need no concurrency slot. */
  get release(): undefined {
    return undefined;
  }

  get raw(): { errored: null } {
    return NEVER_FAILED;
  }

  header(name: string, value: unknown): this {
    const lower = name.toLowerCase();
    if (lower === "content-type") this.#contentType = String(value);
    else if (lower === "connection") this.#isLast = value === "close";
    else this.#lines += `${name}: ${value}\r\n`;
    return this;
  }

  status(status: number): this {
    this.#status = status;
    return this;
  }

  type(contentType: string): this {
    this.#contentType = contentType;
    return this;
  }

  send(payload: unknown): void {
    if (this.#isOver) return;
    this.over();
    const body = typeof payload === "string" ? payload : JSON.stringify(payload);
    const length = Buffer.byteLength(body);
    const keepAlive = this.#isLast ? undefined : this.#owner.keepAliveLines;
    const head = `HTTP/1.1 ${this.#status} ${STATUS_CODES[this.#status]}\r\n${this.#lines}content-type: ${this.#contentType}\r\ncontent-length: ${length}\r\nDate: ${httpDate()}\r\n${keepAlive ?? "Connection: close\r\n"}\r\n`;
    // The text is ASCII if it has as many bytes as characters. The encoding latin1, which is faster to write, then has the same result.
    const encoding = length === body.length ? "latin1" : "utf8";
    this.#owner.respond(head + body, encoding, keepAlive === undefined);
  }

  isDisconnected(): boolean {
    return this.#owner.socket.destroyed;
  }

  /**
   * Returns a signal that is aborted when the client disconnects. Unlike for fastify's requests, a half-closed client is not probed,
   * because no directly served procedure runs for long.
   */
  untilDisconnected(): AbortSignal {
    this.#gone ??= new AbortController();
    if (this.#isOver) this.#gone.abort();
    return this.#gone.signal;
  }

  /** Ends the request. Called when the response has been sent or the connection has closed. */
  over(): void {
    this.#isOver = true;
    this.#gone?.abort();
  }
}

const NEVER_FAILED = { errored: null };
