import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { performance } from "node:perf_hooks";
import type { FastifyRequest } from "fastify";
import { ERROR_KINDS, PublicError } from "../../core/errors.ts";
import { errorBody } from "./errors.ts";
import { BODY_BYTES_MAX } from "./read-body.ts";

/*
 * Sends Node's own connection errors in our form, because a client of this API cannot parse a bare `400 Bad Request` without a
 * body. A problem with one request does not affect earlier ones on the connection.
 *
 *   open ──a parser error, or a request that came too late──► refused ──the answers before it are out──► told why ──► closed
 *
 * A client may end its direction after its requests; it still gets its responses. A client that is gone looks the same until
 * something is written to it.
 */

/** How much is still read of a refused connection, so that the client can read the response before the connection is closed. */
const DISCARDED_BYTES_MAX = 16_777_216;
const DISCARDED_MS_MAX = 2_000;

/** A request whose head has arrived, and its response. */
interface Unanswered {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

export interface Connections {
  /** For fastify's option of this name. */
  clientErrorHandler(error: ConnectionError, socket: Socket): void;
  /** Call it before the server listens. */
  guard(server: Server): void;
}

interface ConnectionError extends Error {
  readonly code?: string;
}

export function createConnections(parts: {
  nextRequestId: () => string;
  docsUrl: () => string;
  /** Called for each response that is sent without fastify. `startedMs` is of `performance.now()`. */
  observe: (status: number, startedMs: number) => void;
}): Connections {
  const unanswered = new WeakMap<Socket, Set<Unanswered>>();
  const refused = new WeakSet<Socket>();

  function track(request: IncomingMessage, response: ServerResponse): void {
    const one: Unanswered = { request, response };
    const own = unanswered.get(request.socket) ?? new Set();
    unanswered.set(request.socket, own.add(one));
    response.once("close", () => own.delete(one));
  }

  /** Sends the reason on the bare socket, as soon as all earlier requests have been answered. */
  async function refuse(socket: Socket, error: PublicError): Promise<void> {
    if (refused.has(socket)) return;
    refused.add(socket);
    socket.pause();
    const owed = [...(unanswered.get(socket) ?? [])];
    // The last one may be the faulty one: its body broke off, so its response is not awaited.
    const whole = owed.filter(({ request }) => request.complete);
    await Promise.all(whole.map(({ response }) => new Promise<void>((done) => response.once("close", done))));
    // A client that asked to close the connection after its last complete request expects no more.
    if (!socket.writable) return;
    const isBegun = owed.some(({ request, response }) => !request.complete && response.headersSent);
    if (isBegun) socket.destroySoon();
    else {
      socket.end(toMessage(error));
      parts.observe(ERROR_KINDS[error.kind].status, performance.now());
      discard(socket);
    }
  }

  function toMessage(error: PublicError): string {
    const { status, title } = ERROR_KINDS[error.kind];
    const body = JSON.stringify(errorBody(error, { requestId: parts.nextRequestId(), docsUrl: parts.docsUrl() }));
    const headers = {
      "Content-Type": "application/json",
      "Content-Length": Buffer.byteLength(body),
      Connection: "close",
    };
    const lines = Object.entries({ ...headers, ...error.headers }).map(([name, value]) => `${name}: ${value}`);
    return [`HTTP/1.1 ${status} ${title}`, ...lines, "", body].join("\r\n");
  }

  return {
    clientErrorHandler(error, socket) {
      // A client that has sent nothing has no request: a response would be taken for that of its first one.
      const isSilent = error.code === LATE && socket.bytesRead === 0;
      if (isSilent || error.code === "ECONNRESET" || !socket.writable) socket.destroy();
      else void refuse(socket, toPublicError(error));
    },
    guard(server) {
      (server as Server & { httpAllowHalfOpen: boolean }).httpAllowHalfOpen = true;
      // Without a handshake there is no one to send a response to. Node calls it a `clientError`, like a request that is no HTTP.
      server.removeAllListeners("tlsClientError");
      server.on("tlsClientError", (_error: Error, socket: Socket) => socket.destroy());
      server.prependListener("request", track);
      server.on("checkContinue", (request, response) => {
        // A client need not send a body that is refused because of its length.
        if (!(Number(request.headers["content-length"]) > BODY_BYTES_MAX)) response.writeContinue();
        server.emit("request", request, response);
      });
      // Refused by `checkHead`, like everything else that is wrong with a head.
      server.on("checkExpectation", (request, response) => void server.emit("request", request, response));
      server.on("connect", (_request, socket: Socket) => {
        socket.on("error", () => undefined);
        void refuse(
          socket,
          new PublicError("method_not_allowed", "This server is no proxy.", { headers: { Allow: "GET, POST" } }),
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

/** Closing a socket with unread bytes resets the connection, and the client may not get what was sent before. */
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

/** What HTTP/1.1 requires of a head, and Node would refuse by itself. Throws PublicError. */
export function checkHead({ raw }: Pick<FastifyRequest, "raw">): void {
  if (raw.httpVersion !== "1.1") return;
  if (raw.headers.host === undefined) {
    throw new PublicError("invalid_input", "The header Host is missing.", {
      errors: [{ location: "header.Host", message: "is required" }],
    });
  }
  if (raw.headers.expect !== undefined && !/^100-continue$/i.test(raw.headers.expect)) {
    throw new PublicError("expectation_failed", "Of the header Expect only 100-continue is known.");
  }
}
