import { createInterface } from "node:readline";
import type { KubeConfig, RequestContext } from "@kubernetes/client-node";
import { type Dispatcher, errors, request } from "undici";

/*
 * A small HTTP client of the Kubernetes API. @kubernetes/client-node finds the server and signs in
 * (exec plugins, rotated tokens, proxies). The requests are made here, so that each has a deadline and can be aborted, and
 * a silent watch is noticed.
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
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly body?: unknown;
  /** For PATCH: how the body is merged. */
  readonly contentType?: "application/json" | "application/merge-patch+json" | "application/apply-patch+yaml";
  readonly signal?: AbortSignal;
}

export interface WatchRequest {
  readonly path: string;
  readonly query: Readonly<Record<string, string | undefined>>;
  /** A connection without a byte for this long counts as dead. */
  readonly silenceMs: number;
  readonly signal: AbortSignal;
}

export interface WatchEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  readonly object: KubeObject;
}

export interface KubeClient {
  /** Throws `KubeError` for any reply but 2xx, and the transport's error when there is none in 30 s. */
  send<T>(request: KubeRequest): Promise<T>;
  /** Ends when the server closes the watch or it is aborted; throws when it breaks or stays silent. */
  watch(request: WatchRequest): AsyncIterable<WatchEvent>;
}

const REQUEST_MS = 30_000;

type Connection = { headers: Record<string, string>; dispatcher?: Dispatcher };

/** `kubeConfig` must have a current cluster. `newContext` is the constructor of client-node, which is loaded late. */
export function createKubeClient(
  kubeConfig: KubeConfig,
  newContext: (url: string, method: string) => RequestContext,
): KubeClient {
  const server = kubeConfig.getCurrentCluster()?.server;
  if (server === undefined) throw new Error("the kubeconfig has no current cluster");
  const base = server.replace(/\/+$/, "");

  const urlOf = (path: string, query: KubeRequest["query"] = {}) => {
    const url = new URL(base + path);
    for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, value);
    return url;
  };

  // Done for each request: tokens are short-lived, and client-node caches what can be cached.
  const signIn = async (url: URL, method: string): Promise<Connection> => {
    const context = newContext(url.href, method);
    await kubeConfig.applySecurityAuthentication(context);
    const dispatcher = context.getDispatcher() as Dispatcher | undefined;
    return { headers: context.getHeaders(), ...(dispatcher === undefined ? {} : { dispatcher }) };
  };

  return {
    async send<T>({ method, path, query, body, contentType = "application/json", signal }: KubeRequest): Promise<T> {
      const url = urlOf(path, query);
      const { headers, ...connection } = await signIn(url, method);
      const deadline = AbortSignal.timeout(REQUEST_MS);
      const response = await request(url, {
        ...connection,
        method,
        headers: {
          ...headers,
          accept: "application/json",
          ...(body === undefined ? {} : { "content-type": contentType }),
        },
        body: body === undefined ? null : JSON.stringify(body),
        signal: signal === undefined ? deadline : AbortSignal.any([signal, deadline]),
      });
      const text = await response.body.text();
      if (response.statusCode >= 300) throw toKubeError(response.statusCode, text);
      return JSON.parse(text) as T;
    },

    async *watch({ path, query, silenceMs, signal }) {
      const url = urlOf(path, { ...query, watch: "true" });
      const { headers, ...connection } = await signIn(url, "GET");
      const response = await request(url, {
        ...connection,
        method: "GET",
        headers: { ...headers, accept: "application/json" },
        signal,
        headersTimeout: REQUEST_MS,
        bodyTimeout: silenceMs,
      });
      if (response.statusCode >= 300) throw toKubeError(response.statusCode, await response.body.text());
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
  };
}

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
