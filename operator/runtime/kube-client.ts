import { createInterface } from "node:readline";
import { type Dispatcher, errors, request } from "undici";
import type { ClusterAccess } from "./cluster-access.ts";
import { createKubeConnections } from "./kube-connections.ts";
import { createWatches, readResourcePath, type Watches } from "./watches.ts";

/*
 * Small HTTP client for the Kubernetes API: each request has a deadline and can be aborted, and a silent watch is detected.
 * cluster-access.ts provides its credentials and kube-connections.ts its connections.
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

/** Error for an unsuccessful response of the Kubernetes API. */
export class KubeError extends Error {
  readonly status: number;
  /** Machine-readable reason of the Status object, such as `AlreadyExists` or `Expired`. */
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
  /** Whether a GET requests only the metadata. */
  readonly metadataOnly?: boolean;
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly body?: unknown;
  /** Content type of the body. For a PATCH, it determines how the server merges the body. */
  readonly contentType?: "application/json" | "application/merge-patch+json" | "application/apply-patch+yaml";
  readonly signal?: AbortSignal;
  /** Maximum time to wait for the response. Default: 30 s. */
  readonly deadlineMs?: number;
}

export interface WatchRequest {
  readonly path: string;
  readonly query: Readonly<Record<string, string | undefined>>;
  /** Time without a byte after which a connection counts as dead. */
  readonly silenceMs: number;
  readonly signal: AbortSignal;
  /** Called when the server accepts the watch. The first event may arrive much later. */
  readonly onOpen?: () => void;
}

export interface WatchEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  readonly object: KubeObject;
}

export interface KubeClient {
  /** Sends a request. Throws `KubeError` for a non-2xx response, and the transport error if there is no response before the deadline. */
  send<T>(request: KubeRequest): Promise<T>;
  /**
   * Watches a collection. Ends when the server closes the watch or the watch is aborted; throws if the connection breaks or stays silent.
   */
  watch(request: WatchRequest): AsyncIterable<WatchEvent>;
  /** State of all watches of this client, for readiness and metrics. */
  readonly watches: Watches;
}

const REQUEST_MS = 30_000;
/**
 * Time by which the abort signal is later than undici's own timeouts, which should fire first. The signal is still necessary, because it
 * also limits the wait for a connection.
 */
const LATE_MS = 500;

export interface OpenKubeClient extends KubeClient {
  /** Closes all connections; requests in flight fail. */
  close(): Promise<void>;
}

/** Outcome of a request, or of opening a watch. */
export interface KubeExchange {
  readonly method: KubeRequest["method"] | "WATCH";
  readonly resource: string;
  /** Status of the response; `undefined` if none arrived. */
  readonly status: number | undefined;
  readonly durationMs: number;
}

export interface KubeClientOptions {
  readonly observe?: ((exchange: KubeExchange) => void) | undefined;
  /** Clock for durations. Default: the monotonic clock of the process. */
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

  /** Sends the request. Reports its outcome, unless the caller aborted it. */
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
          // Timeouts with which undici detects a dead connection and opens another one.
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
      // readline does not forward errors of its input. Without this listener, a watch whose connection breaks would seem to end normally.
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

/** Returns whether an error means that a watch was silent for too long. This is normal, and the watch is reopened without a warning. */
export const isSilence = (error: unknown): boolean => error instanceof errors.BodyTimeoutError;

function toKubeError(status: number, text: string): KubeError {
  try {
    const { reason = "", message = "" } = JSON.parse(text) as { reason?: string; message?: string };
    return new KubeError(status, reason, message);
  } catch {
    return new KubeError(status, "", text.slice(0, 200));
  }
}
