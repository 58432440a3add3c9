import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { EventEmitter } from "node:events";
import { Agent, type Dispatcher, ProxyAgent } from "undici";
import type { TlsSettings } from "./cluster-access.ts";

/*
 * Pools connections to the Kubernetes API. Requests and watches use separate connections, so that watches, even if they are numerous or
 * unread, never delay a request, especially the renewal of a Lease. Over HTTP/2, all requests share one connection, and all watches share
 * another. Over HTTP/1.1 (behind a proxy), requests share four connections, and each watch has a connection of its own.
 */

const REQUEST_CONNECTIONS = 4;
/**
 * Maximum idle time of a connection. An idle operator sends so few requests that, with undici's default of 4 s, each would need a new
 * connection.
 */
const IDLE_MS = 60_000;
/** TCP keepalive as in client-go, because cloud load balancers drop connections that are idle for a minute. */
const KEEP_ALIVE = { keepAlive: true, keepAliveInitialDelay: 30_000 };

/**
 * Diagnostics channel through which each stream gets an additional error listener. undici removes its own listeners when a request is
 * aborted. If the session ends before Node releases the stream, the stream emits the session's error, and an error without a listener would
 * end the process.
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

  /** After a certificate was replaced, new requests use new connections, and requests in flight complete on the old ones. */
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

/** Omits `undefined` options, because `tls.connect` treats them differently from omitted ones. */
const defined = (tls: TlsSettings) =>
  Object.fromEntries(Object.entries(tls).filter(([, value]) => value !== undefined));
