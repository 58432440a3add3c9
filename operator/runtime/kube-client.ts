import { createInterface } from "node:readline";
import { type Dispatcher, errors, request } from "undici";
import type { ClusterAccess } from "./cluster-access.ts";
import { createKubeConnections } from "./kube-connections.ts";
import { readResourcePath } from "./resource-path.ts";
import { createWatches, type Watches } from "./watches.ts";

/*
 * A small HTTP client of the Kubernetes API: each request has a deadline and can be aborted, and a silent watch is noticed.
 * How it signs in is in cluster-access.ts, its connections in kube-connections.ts.
 */

export interface KubeObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly uid: string;
    readonly resourceVersion: string;
    readonly generation?: number;
    readonly creationTimestamp: string;
    readonly deletionTimestamp?: string;
    readonly finalizers?: readonly string[];
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec?: unknown;
  readonly status?: unknown;
}

export interface KubeList {
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string };
  readonly items: readonly KubeObject[];
}

/** A reply of the Kubernetes API other than success. */
export class KubeError extends Error {
  readonly status: number;
  /** The machine-readable reason of the Status object, such as `AlreadyExists` or `Expired`. */
  readonly reason: string;

  constructor(status: number, reason: string, message: string) {
    super(`${status} ${reason}: ${message}`);
    this.name = "KubeError";
    this.status = status;
    this.reason = reason;
  }
}

export const isKubeError = (error: unknown, status: number): error is KubeError =>
  error instanceof KubeError && error.status === status;

export interface KubeRequest {
  /** For GET: the API server sends the metadata alone. */
  readonly metadataOnly?: boolean;
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly body?: unknown;
  /** For PATCH: how the body is merged. */
  readonly contentType?: "application/json" | "application/merge-patch+json" | "application/apply-patch+yaml";
  readonly signal?: AbortSignal;
  /** 30 s when left out. */
  readonly deadlineMs?: number;
}

export interface WatchRequest {
  readonly path: string;
  readonly query: Readonly<Record<string, string | undefined>>;
  /** A connection without a byte for this long counts as dead. */
  readonly silenceMs: number;
  readonly signal: AbortSignal;
  /** Called when the server has accepted the watch: it may be long until the first event. */
  readonly onOpen?: () => void;
}

export interface WatchEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  readonly object: KubeObject;
}

export interface KubeClient {
  /** Throws `KubeError` for any reply but 2xx, and the transport's error when there is none before the deadline. */
  send<T>(request: KubeRequest): Promise<T>;
  /** Ends when the server closes the watch or it is aborted; throws when it breaks or stays silent. */
  watch(request: WatchRequest): AsyncIterable<WatchEvent>;
  /** Of all who watch by this client, for readiness and metrics. */
  readonly watches: Watches;
}

const REQUEST_MS = 30_000;
/** The signal, which also bounds the wait for a connection, comes later than the timeouts that undici acts on. */
const LATE_MS = 500;

export interface OpenKubeClient extends KubeClient {
  /** Closes all connections; requests under way fail. */
  close(): Promise<void>;
}

/** A request, or the opening of a watch, that was answered or failed. */
export interface KubeExchange {
  readonly method: KubeRequest["method"] | "WATCH";
  readonly resource: string;
  /** undefined when there was no answer. */
  readonly status: number | undefined;
  readonly durationMs: number;
}

export interface KubeClientOptions {
  readonly observe?: ((exchange: KubeExchange) => void) | undefined;
  /** The process's monotonic clock when left out. */
  readonly monotonicMs?: () => number;
}

export function createKubeClient(access: ClusterAccess, options: KubeClientOptions = {}): OpenKubeClient {
  const { monotonicMs = () => performance.now(), observe } = options;
  const connections = createKubeConnections(access.proxyUrl);

  const urlOf = (path: string, query: KubeRequest["query"] = {}) => {
    const url = new URL(access.server + path);
    for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, value);
    return url;
  };

  const failure = (status: number, text: string): KubeError => {
    if (status === 401) access.forget();
    return toKubeError(status, text);
  };

  /** Makes the request, and tells how it went unless it was aborted on purpose. */
  const exchange = async (
    { method, path, signal }: Pick<KubeExchange, "method"> & { readonly path: string; readonly signal?: AbortSignal },
    ask: () => Promise<Dispatcher.ResponseData>,
  ): Promise<Dispatcher.ResponseData> => {
    const startedAt = monotonicMs();
    const tell = (status: number | undefined) =>
      observe?.({ method, ...readResourcePath(path), status, durationMs: monotonicMs() - startedAt });
    try {
      const response = await ask();
      tell(response.statusCode);
      return response;
    } catch (error) {
      if (signal?.aborted !== true) tell(undefined);
      throw error;
    }
  };

  return {
    async send<T>(asked: KubeRequest): Promise<T> {
      const { method, path, query, body, contentType = "application/json", signal, deadlineMs = REQUEST_MS } = asked;
      const { metadataOnly = false } = asked;
      const { headers, tls } = await access.signIn();
      const deadline = AbortSignal.timeout(deadlineMs + LATE_MS);
      const response = await exchange(asked, () =>
        request(urlOf(path, query), {
          dispatcher: connections.forRequests(tls),
          method,
          headers: {
            ...ACCEPTED,
            ...headers,
            ...(metadataOnly ? METADATA_ACCEPTED : {}),
            ...(body === undefined ? {} : { "content-type": contentType }),
          },
          body: body === undefined ? null : JSON.stringify(body),
          signal: signal === undefined ? deadline : AbortSignal.any([signal, deadline]),
          // Only when these pass does undici find out whether the connection is dead, and make another one.
          headersTimeout: deadlineMs,
          bodyTimeout: deadlineMs,
        }),
      );
      const text = await response.body.text();
      if (response.statusCode >= 300) throw failure(response.statusCode, text);
      return JSON.parse(text) as T;
    },

    async *watch({ path, query, silenceMs, signal, onOpen }) {
      const { headers, tls } = await access.signIn();
      const response = await exchange({ method: "WATCH", path, signal }, () =>
        request(urlOf(path, { ...query, watch: "true" }), {
          dispatcher: connections.forWatches(tls),
          method: "GET",
          headers: { ...ACCEPTED, ...headers },
          signal,
          headersTimeout: REQUEST_MS,
          bodyTimeout: silenceMs,
        }),
      );
      if (response.statusCode >= 300) throw failure(response.statusCode, await response.body.text());
      onOpen?.();
      const lines = createInterface({ input: response.body, crlfDelay: Number.POSITIVE_INFINITY });
      // readline does not pass on an error of its input, so a broken watch would look like one that ended normally.
      let broken: Error | undefined;
      response.body.once("error", (error: Error) => {
        broken = error;
        lines.close();
      });
      try {
        for await (const line of lines) if (line !== "") yield JSON.parse(line) as WatchEvent;
      } finally {
        lines.close();
        response.body.destroy();
      }
      if (broken !== undefined && !signal.aborted) throw broken;
    },

    watches: createWatches(monotonicMs),
    close: connections.close,
  };
}

const METADATA_ACCEPTED = { accept: "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1" };
const ACCEPTED = { accept: "application/json", "user-agent": "postern-operator" };

/** The silence of a watch is normal and followed by a new watch, so it is not logged as a warning. */
export const isSilence = (error: unknown): boolean => error instanceof errors.BodyTimeoutError;

function toKubeError(status: number, text: string): KubeError {
  try {
    const { reason = "", message = "" } = JSON.parse(text) as { reason?: string; message?: string };
    return new KubeError(status, reason, message);
  } catch {
    return new KubeError(status, "", text.slice(0, 200));
  }
}
