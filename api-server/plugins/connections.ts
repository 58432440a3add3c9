import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { performance } from "node:perf_hooks";
import type { Duplex } from "node:stream";
import type { FastifyRequest } from "fastify";
import { ERROR_KINDS, PublicError } from "../../core/errors.ts";
import { errorBody } from "./errors.ts";
import { BODY_BYTES_MAX } from "./read-body.ts";

/*
 * Sends Node's own connection errors in this API's format, because its clients cannot parse a bare `400 Bad Request` without a body. An
 * error in one request does not affect earlier requests on the connection.
 *
 *   open ──parser error, or a late request──► rejected ──earlier responses sent──► error sent ──► closed
 *
 * A client that half-closes the connection after its requests still gets the responses. Until the server writes to it, a disconnected
 * client looks the same.
 */

/**
 * Maximum number of bytes that are read and discarded from a rejected connection, so that the client can read the response before the
 * connection closes.
 */
const DISCARDED_BYTES_MAX = 16_777_216;
const DISCARDED_MS_MAX = 2_000;

/** A request whose head is complete, and its response, which has not been completely sent yet. */
interface Unanswered {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

export interface Connections {
  /** Handler for fastify's option `clientErrorHandler`. */
  clientErrorHandler(error: ConnectionError, socket: Socket): void;
  /** Installs the listeners. Call it before the server listens. */
  guard(server: Server): void;
  /**
   * Returns the time at which the server began to wait for the client, as `performance.now()`: after its last request or response, or
   * `openedMs` before the first. `undefined` while the server processes a request.
   */
  awaitedSince(socket: Duplex, openedMs: number): number | undefined;
}

interface ConnectionError extends Error {
  readonly code?: string;
}

export function createConnections(deps: {
  nextRequestId: () => string;
  docsUrl: () => string;
  /** Called for each response that is sent without fastify. `startedMs` is a value of `performance.now()`. */
  observe: (status: number, startedMs: number) => void;
}): Connections {
  const unanswered = new WeakMap<Duplex, Set<Unanswered>>();
  const changedMs = new WeakMap<Duplex, number>();
  const refused = new WeakSet<Socket>();

  function track(request: IncomingMessage, response: ServerResponse): void {
    const one: Unanswered = { request, response };
    const own = unanswered.get(request.socket) ?? new Set();
    const { socket } = request;
    unanswered.set(socket, own.add(one));
    changedMs.set(socket, performance.now());
    response.once("close", () => {
      own.delete(one);
      changedMs.set(socket, performance.now());
    });
  }

  /** Sends the error on the raw socket, as soon as all earlier requests have their responses. */
  async function refuse(socket: Socket, error: PublicError): Promise<void> {
    if (refused.has(socket)) return;
    refused.add(socket);
    socket.pause();
    const owed = [...(unanswered.get(socket) ?? [])];
    // The last request may be the one that failed. Its body was cut off, so the error is sent without waiting for a response to it.
    const complete = owed.filter(({ request }) => request.complete);
    await Promise.all(complete.map(({ response }) => new Promise<void>((done) => response.once("close", done))));
    // No error is sent on a connection that is no longer writable: its client requested that it be closed after the last complete request.
    if (!socket.writable) return;
    const isBegun = owed.some(({ request, response }) => !request.complete && response.headersSent);
    if (isBegun) socket.destroySoon();
    else {
      socket.end(toMessage(error));
      deps.observe(ERROR_KINDS[error.kind].status, performance.now());
      discard(socket);
    }
  }

  function toMessage(error: PublicError): string {
    const { status, title } = ERROR_KINDS[error.kind];
    const body = JSON.stringify(errorBody(error, { requestId: deps.nextRequestId(), docsUrl: deps.docsUrl() }));
    const headers = {
      "Content-Type": "application/json",
      "Content-Length": Buffer.byteLength(body),
      Connection: "close",
    };
    const lines = Object.entries({ ...headers, ...error.headers }).map(([name, value]) => `${name}: ${value}`);
    return [`HTTP/1.1 ${status} ${title}`, ...lines, "", body].join("\r\n");
  }

  return {
    awaitedSince(socket, openedMs) {
      for (const { request, response } of unanswered.get(socket) ?? []) {
        // While its body is paused, a request waits for a concurrency slot, not for the client.
        if (request.complete ? !response.writableEnded : request.isPaused()) return undefined;
      }
      return changedMs.get(socket) ?? openedMs;
    },
    clientErrorHandler(error, socket) {
      // A client that has sent no bytes gets no response, because it could mistake that for the response to its first request.
      const isSilent = error.code === LATE && socket.bytesRead === 0;
      if (isSilent || error.code === "ECONNRESET" || !socket.writable) socket.destroy();
      else void refuse(socket, toPublicError(error));
    },
    guard(server) {
      (server as Server & { httpAllowHalfOpen: boolean }).httpAllowHalfOpen = true;
      // Only closes the socket, because no response can be sent without a TLS handshake. Node's own listener would emit `clientError`, as
      // for a malformed request.
      server.removeAllListeners("tlsClientError");
      server.on("tlsClientError", (_error: Error, socket: Socket) => socket.destroy());
      server.prependListener("request", track);
      server.on("checkContinue", (request, response) => {
        // Sends `100 Continue` unless the body is too long. If it is, the request is rejected, and its client need not send the body.
        if (!(Number(request.headers["content-length"]) > BODY_BYTES_MAX)) response.writeContinue();
        server.emit("request", request, response);
      });
      // Passes on requests with an unknown `Expect` header, because `checkHead` rejects them like all other invalid heads.
      server.on("checkExpectation", (request, response) => void server.emit("request", request, response));
      server.on("connect", (_request, socket: Socket) => {
        socket.on("error", () => undefined);
        void refuse(
          socket,
          new PublicError("method_not_allowed", "This server is not a proxy.", { headers: { Allow: "GET, POST" } }),
        );
      });
    },
  };
}

const LATE = "ERR_HTTP_REQUEST_TIMEOUT";

function toPublicError({ code }: ConnectionError): PublicError {
  if (code === LATE) return new PublicError("request_timeout", "The request did not arrive in time.");
  if (code === "HPE_HEADER_OVERFLOW") {
    return new PublicError("request_headers_too_large", "The head of the request is larger than 16 KiB.");
  }
  return new PublicError("request_body_unreadable", "The request is not valid HTTP.");
}

/** Discards unread bytes before the socket closes. Otherwise the connection would be reset, and the client could lose the last response. */
function discard(socket: Socket): void {
  let bytes = 0;
  const timer = setTimeout(() => socket.destroy(), DISCARDED_MS_MAX);
  socket.once("close", () => clearTimeout(timer));
  socket.removeAllListeners("data");
  socket.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > DISCARDED_BYTES_MAX) socket.destroy();
  });
  socket.resume();
}

/**
 * Checks a request head against those requirements of HTTP/1.1 that Node would otherwise enforce with its own error response. Throws
 * PublicError.
 */
export function checkHead({ raw }: Pick<FastifyRequest, "raw">): void {
  if (raw.httpVersion !== "1.1") return;
  if (raw.headers.host === undefined) {
    throw new PublicError("invalid_input", "The header Host is missing.", {
      errors: [{ location: "header.Host", message: "is required" }],
    });
  }
  if (raw.headers.expect !== undefined && !/^100-continue$/i.test(raw.headers.expect)) {
    throw new PublicError("expectation_failed", "The header Expect supports only 100-continue.");
  }
}

/** Timeout for receiving a request head, and for a TLS handshake (Node's default for the latter is two minutes). */
export const HEAD_MS_MAX = 10_000;
/** Timeout after which a connection is closed if its client reads no bytes of a pending response. */
export const READ_MS_MAX = 120_000;
