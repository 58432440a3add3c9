import type { IncomingHttpHeaders } from "node:http";
import type { Release } from "../concurrency-limiter.ts";

/*
 * What the pipeline needs of a request and of its reply, whichever front received it. Fastify's own objects are of these shapes, once
 * `registerArrival` has decorated them.
 */

/** How the address of a request was registered. */
export interface ApiRoute {
  /** Where it is served: its name in metrics and logs; undefined for an unknown path. */
  readonly url?: string | undefined;
  readonly config: RouteSettings;
}

export interface RouteSettings {
  /** Needs no root key. */
  isOpen?: boolean;
  /** A session of the dashboard may take the place of a root key. */
  takesSessions?: boolean;
  /** On each answer, errors included. */
  headers?: Readonly<Record<string, string>> | undefined;
}

export interface ApiRequest {
  /** Made by us. */
  readonly id: string;
  /** As it came, with its query. */
  readonly url: string;
  /** Names in lower case. */
  readonly headers: IncomingHttpHeaders;
  /** The bytes of the body, as a Buffer; undefined when there are none. */
  readonly body: unknown;
  readonly query: unknown;
  /** Of the path. */
  readonly params: unknown;
  /** The client's address: that of the connection, or the one that a trusted proxy reports. */
  readonly ip: string;
  /** When it arrived, by `performance.now()`. */
  readonly startedMs: number;
  /** Set while the rest of a refused body is read; resolves when that is over. */
  readonly discarded: Promise<void> | undefined;
  /** Of a large body: frees its slot, when its handler has ended. */
  readonly release: Release | undefined;
  readonly routeOptions: ApiRoute;
  readonly raw: {
    /** With what its connection failed. */
    readonly errored: Error | null;
  };
}

export interface ApiReply {
  header(name: string, value: unknown): ApiReply;
  status(status: number): ApiReply;
  type(contentType: string): ApiReply;
  /** A text and a stream are sent unchanged, an object as the response's schema says. */
  send(payload: unknown): unknown;
  /** The client has disconnected. */
  isGone(): boolean;
  /** A signal that is aborted when the client has gone, and also when it has been answered. */
  untilGone(): AbortSignal;
}
