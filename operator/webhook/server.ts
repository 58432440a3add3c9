import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { type Admission, type AdmissionRequest, answerOf, readReview } from "./review.ts";

/*
 * The HTTPS server that the Kubernetes API server calls. Anything in the cluster can call it too, so what arrives is bounded in size and
 * time, and no answer has more than a caller sent or may know.
 */

/** An API server sends objects of 3 MB at most, and with an update the one before too. */
const BODY_BYTES_MAX = 8 * 1024 * 1024;
/** An API server waits ten seconds by default. */
const REQUEST_MS = 10_000;
/** Ours waits five (configurations.ts). A refusal says why; an answer that is late says nothing. */
const DECISION_MS = 4_000;
const CONNECTIONS_MAX = 1_000;
/**
 * API servers keep idle connections for 90 s. They must be the ones to close: a call that meets a connection that is being closed is not
 * repeated, and refuses a pod.
 */
const KEEP_ALIVE_MS = 300_000;
/** How long calls are still taken at the end, each as the last of its connection. Endpoints that go are known everywhere some time later. */
const DRAIN_MS = 2_000;
const DRAIN_LOOK_MS = 50;

type Decide = (request: AdmissionRequest) => Admission | Promise<Admission>;

export interface WebhookServerOptions {
  readonly host: string;
  /** 0 lets the kernel choose. */
  readonly port: number;
  /** By path. May throw: the object is refused then, because the webhook is there to hold back what was not checked. */
  readonly handlers: Readonly<Record<string, Decide>>;
  /** Whether the manifests are known; requests get 503 before. */
  readonly isReady: () => boolean;
  readonly observe: (what: { path: string; allowed: boolean; seconds: number }) => void;
  readonly log: Logger;
}

export interface WebhookServer {
  readonly port: number;
  /** For connections from now on; those that are open go on. */
  setCertificate(pair: { cert: string; key: string }): void;
  /** Goes on answering for a moment, so that no call meets a connection that is being closed. */
  close(): Promise<void>;
}

/** Throws when the port is taken, or the pair is not usable. */
export async function startWebhookServer(
  options: WebhookServerOptions,
  pair: { cert: string; key: string },
): Promise<WebhookServer> {
  const { log } = options;
  let isEnding = false;
  const server: Server = createServer(
    {
      ...{ key: pair.key, cert: pair.cert, minVersion: "TLSv1.2" },
      // Node gives a handshake two minutes: connections that send nothing would take all that there may be for as long.
      ...{ handshakeTimeout: REQUEST_MS, requestTimeout: REQUEST_MS, headersTimeout: REQUEST_MS },
    },
    (request, response) => {
      answer(request, options)
        .catch((error: unknown) => {
          log.debug({ err: error }, "a call of the webhook was not answered");
          return { status: 400, body: "the request could not be read\n" };
        })
        .then((reply) => send(response, reply, isEnding));
    },
  );
  server.maxConnections = CONNECTIONS_MAX;
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  // Handshakes that fail are the caller's: an API server that does not know the authority yet tries again.
  server.on("tlsClientError", (error) => log.debug({ err: error }, "a TLS handshake with the webhook failed"));
  server.listen(options.port, options.host);
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    setCertificate: ({ cert, key }) => server.setSecureContext({ cert, key, minVersion: "TLSv1.2" }),
    close: async () => {
      isEnding = true;
      const drainedMs = performance.now() + DRAIN_MS;
      while (performance.now() < drainedMs && (await connectionsOf(server)) > 0) await sleep(DRAIN_LOOK_MS);
      const closed = once(server, "close");
      server.close();
      // Calls in flight are short; idle connections would keep the server open.
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

async function answer(request: IncomingMessage, options: WebhookServerOptions): Promise<Reply> {
  const path = request.url?.split("?")[0] ?? "";
  const handle = Object.hasOwn(options.handlers, path) ? options.handlers[path] : undefined;
  if (handle === undefined) return { status: 404, body: "not found\n" };
  if (request.method !== "POST") return { status: 405, body: "only POST\n" };
  const text = await readBody(request);
  if (text === undefined) return { status: 413, body: `more than ${BODY_BYTES_MAX} bytes\n` };
  const review = readReview(parseJson(text));
  if (review === undefined) return { status: 400, body: "expected an AdmissionReview of admission.k8s.io/v1\n" };
  if (!options.isReady()) return { status: 503, body: "the manifests have not been listed yet\n" };
  const started = performance.now();
  const admission = await decide(handle, review, options.log);
  options.observe({ path, allowed: admission.allowed, seconds: (performance.now() - started) / 1000 });
  return { status: 200, body: answerOf(review.uid, admission) };
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
      "the webhook failed; the object is refused",
    );
    return { allowed: false, message: "The operator failed on this object; its log says how." };
  }
}

/** Returns undefined when the body is too long. */
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
    // The rest of a body that is too long is not read.
    ...(status === 413 || isLast ? { connection: "close" } : {}),
  });
  response.end(text);
}
