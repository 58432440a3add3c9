import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { type Admission, type AdmissionRequest, readReview, responseOf } from "./review.ts";

/*
 * HTTPS server that the Kubernetes API server calls. Any client in the cluster can call it, so requests are limited in size and time, and
 * responses contain only data that the caller has sent or is allowed to see.
 */

/** Maximum size of a request: an API server sends objects of up to 3 MB, and with an update also the previous version. */
const BODY_BYTES_MAX = 8 * 1024 * 1024;
/** Maximum time for a request. An API server waits 10 s by default. */
const REQUEST_MS = 10_000;
/**
 * Maximum time for a decision. It is less than the timeout of 5 s in the webhook configuration (configurations.ts), so that this server
 * rejects the object, with a reason, before the API server times out.
 */
const DECISION_MS = 4_000;
const CONNECTIONS_MAX = 1_000;
/**
 * Idle timeout of connections. It exceeds the 90 s after which API servers close idle connections. They must be the side that closes: a
 * call that arrives on a connection that this server is closing is not retried, so its pod is rejected.
 */
const KEEP_ALIVE_MS = 300_000;
/**
 * Time during which the server still accepts calls at shutdown, because API servers learn late that an endpoint was removed. Each of these
 * calls is the last one on its connection.
 */
const DRAIN_MS = 2_000;
const DRAIN_POLL_MS = 50;

type Decide = (request: AdmissionRequest) => Admission | Promise<Admission>;

export interface WebhookServerOptions {
  readonly host: string;
  /** Port number; 0 selects a free port. */
  readonly port: number;
  /** Handlers by path. If a handler throws, the object is rejected: an object that was not checked must not be admitted. */
  readonly handlers: Readonly<Record<string, Decide>>;
  /** Returns whether the manifests are listed; until then, requests get 503. */
  readonly isReady: () => boolean;
  readonly observe: (what: { path: string; allowed: boolean; seconds: number }) => void;
  readonly log: Logger;
}

export interface WebhookServer {
  readonly port: number;
  /** Sets the certificate of new connections; open connections continue. */
  setCertificate(pair: { cert: string; key: string }): void;
  /** Closes the server after it has responded to calls for 2 more seconds, so that no call arrives on a closing connection. */
  close(): Promise<void>;
}

/** Starts the server. Throws if the port is in use, or if the certificate and key are not usable. */
export async function startWebhookServer(
  options: WebhookServerOptions,
  pair: { cert: string; key: string },
): Promise<WebhookServer> {
  const { log } = options;
  let isEnding = false;
  const server: Server = createServer(
    {
      ...{ key: pair.key, cert: pair.cert, minVersion: "TLSv1.2" },
      // By default, Node allows two minutes for a handshake, during which silent clients could occupy all connections.
      ...{ handshakeTimeout: REQUEST_MS, requestTimeout: REQUEST_MS, headersTimeout: REQUEST_MS },
    },
    (request, response) => {
      respond(request, options)
        .catch((error: unknown) => {
          log.debug({ err: error }, "webhook request cannot be read; it is rejected");
          return { status: 400, body: "the request could not be read\n" };
        })
        .then((reply) => send(response, reply, isEnding));
    },
  );
  server.maxConnections = CONNECTIONS_MAX;
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  // A failed handshake needs no action here, because the client handles it. For example, an API server that does not trust the new
  // authority yet retries.
  server.on("tlsClientError", (error) => log.debug({ err: error }, "webhook TLS handshake failed"));
  server.listen(options.port, options.host);
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    setCertificate: ({ cert, key }) => server.setSecureContext({ cert, key, minVersion: "TLSv1.2" }),
    close: async () => {
      isEnding = true;
      const drainedMs = performance.now() + DRAIN_MS;
      while (performance.now() < drainedMs && (await connectionsOf(server)) > 0) await sleep(DRAIN_POLL_MS);
      const closed = once(server, "close");
      server.close();
      // Closes idle connections, because they would keep the server open. Calls in flight get another 10 s to complete.
      server.closeIdleConnections();
      setTimeout(() => server.closeAllConnections(), REQUEST_MS).unref();
      await closed;
    },
  };
}

const connectionsOf = (server: Server): Promise<number> =>
  new Promise((resolve, reject) =>
    server.getConnections((error, count) => (error === null ? resolve(count) : reject(error))),
  );

interface Reply {
  readonly status: number;
  readonly body: string | object;
}

async function respond(request: IncomingMessage, options: WebhookServerOptions): Promise<Reply> {
  const path = request.url?.split("?")[0] ?? "";
  const handle = Object.hasOwn(options.handlers, path) ? options.handlers[path] : undefined;
  if (handle === undefined) return { status: 404, body: "not found\n" };
  if (request.method !== "POST") return { status: 405, body: "only POST\n" };
  const text = await readBody(request);
  if (text === undefined) return { status: 413, body: `more than ${BODY_BYTES_MAX} bytes\n` };
  const review = readReview(parseJson(text));
  if (review === undefined) return { status: 400, body: "expected an AdmissionReview of admission.k8s.io/v1\n" };
  if (!options.isReady()) return { status: 503, body: "the manifests are not listed yet\n" };
  const started = performance.now();
  const admission = await decide(handle, review, options.log);
  options.observe({ path, allowed: admission.allowed, seconds: (performance.now() - started) / 1000 });
  return { status: 200, body: responseOf(review.uid, admission) };
}

async function decide(handle: Decide, review: AdmissionRequest, log: Logger): Promise<Admission> {
  try {
    const late = sleep(DECISION_MS, undefined, { ref: false });
    const admission = await Promise.race([handle(review), late]);
    if (admission === undefined) throw new Error(`no decision within ${DECISION_MS} ms`);
    return admission;
  } catch (error) {
    log.error(
      { err: error, namespace: review.namespace, kind: review.kind.kind },
      "the webhook failed; the object is rejected",
    );
    return {
      allowed: false,
      message: "An internal error occurred for this object; the operator's log contains the details.",
    };
  }
}

/** Returns the body of a request; `undefined` if it is too long. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > BODY_BYTES_MAX) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function send(response: ServerResponse, { status, body }: Reply, isLast: boolean): void {
  const isText = typeof body === "string";
  const text = isText ? body : JSON.stringify(body);
  response.writeHead(status, {
    "content-type": isText ? "text/plain; charset=utf-8" : "application/json",
    "content-length": Buffer.byteLength(text),
    // Closes the connection after an oversized body, because the server does not read the rest of it.
    ...(status === 413 || isLast ? { connection: "close" } : {}),
  });
  response.end(text);
}
