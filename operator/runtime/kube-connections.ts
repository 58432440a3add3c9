import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { EventEmitter } from "node:events";
import { Agent, type Dispatcher, ProxyAgent } from "undici";
import type { TlsSettings } from "./cluster-access.ts";

/*
 * The connections to the Kubernetes API, kept between requests. Requests and watches have their own, so that a watch that is not
 * read, or many watches, never hold up a request (above all the renewal of a Lease). An API server speaks HTTP/2: then all requests
 * share one connection, and all watches another. Over HTTP/1.1 (a proxy in front of it) requests share four, and each watch has one.
 */

const REQUEST_CONNECTIONS = 4;
/** Requests are rare at rest: with undici's four seconds each would find its connection closed. */
const IDLE_MS = 60_000;
/** As client-go: cloud load balancers forget connections that are idle for a minute. */
const KEEP_ALIVE = { keepAlive: true, keepAliveInitialDelay: 30_000 };

/**
 * undici takes its listeners off the stream of a request that was aborted. When the session ends before Node has let go of the stream, it
 * fails with the session's error, and an error without a listener ends the process. So each stream has a listener of ours.
 */
const STREAM_CREATED = "http2.client.stream.created";
const listenToErrors = (message: unknown): void => {
  (message as { readonly stream: EventEmitter }).stream.on("error", () => undefined);
};

export interface KubeConnections {
  forRequests(tls: TlsSettings): Dispatcher;
  forWatches(tls: TlsSettings): Dispatcher;
  close(): Promise<void>;
}

interface Open {
  readonly tls: string;
  readonly requests: Dispatcher;
  readonly watches: Dispatcher;
}

export function createKubeConnections(proxyUrl: string | undefined): KubeConnections {
  let current: Open | undefined;
  subscribe(STREAM_CREATED, listenToErrors);

  const open = (tls: TlsSettings, connections?: number): Dispatcher => {
    const options = { keepAliveTimeout: IDLE_MS, ...(connections === undefined ? {} : { connections }) };
    const connect = { ...defined(tls), ...KEEP_ALIVE };
    return proxyUrl === undefined
      ? new Agent({ ...options, connect })
      : new ProxyAgent({ ...options, uri: proxyUrl, requestTls: connect });
  };

  /** A certificate was replaced: new requests need new connections, and those under way may end on theirs. */
  const openFor = (tls: TlsSettings): Open => {
    const text = JSON.stringify(tls);
    if (current?.tls === text) return current;
    const before = current;
    current = { tls: text, requests: open(tls, REQUEST_CONNECTIONS), watches: open(tls) };
    void before?.requests.close();
    void before?.watches.close();
    return current;
  };

  return {
    forRequests: (tls) => openFor(tls).requests,
    forWatches: (tls) => openFor(tls).watches,
    close: async () => {
      unsubscribe(STREAM_CREATED, listenToErrors);
      await Promise.all([current?.requests.destroy(), current?.watches.destroy()]);
    },
  };
}

/** An option that is undefined is not the same to `tls.connect` as one that is left out. */
const defined = (tls: TlsSettings) =>
  Object.fromEntries(Object.entries(tls).filter(([, value]) => value !== undefined));
