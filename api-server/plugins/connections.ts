import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { performance } from "node:perf_hooks";
import type { FastifyRequest } from "fastify";
import { ERROR_KINDS, PublicError } from "../../core/errors.ts";
import { errorBody } from "./errors.ts";
import { BODY_BYTES_MAX } from "./read-body.ts";

/*
 * What Node would say by itself about a connection, said in our form: a bare `400 Bad Request` without a body is nothing that a
 * client of this API can read. And what is wrong with one request takes nothing from those before it on the connection.
 *
 *   open ──a parser error, or a request that came too late──► refused ──the answers before it are out──► told why ──► closed
 *
 * A client may end its side once it has asked; its answers are sent all the same. One that has gone for good looks alike until
 * something is written to it.
 */

/** What is still read of a refused connection, so that the client is not cut off before it has read why. */
const DISCARDED_BYTES_MAX = 16_777_216;
const DISCARDED_MS_MAX = 2_000;

/** A request that has arrived as far as its head, and what answers it. */
interface Unanswered {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

export interface Connections {
  /** For fastify's option of this name. */
  clientErrorHandler(error: ConnectionError, socket: Socket): void;
  /** To be called before the server listens. */
  guard(server: Server): void;
}

interface ConnectionError extends Error {
  readonly code?: string;
}

export function createConnections(parts: {
  nextRequestId: () => string;
  docsUrl: () => string;
  /** Told of each answer that is sent past fastify. `startedMs` is of `performance.now()`. */
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

  /** Says why on the bare socket, as soon as everything that was asked before has been answered. */
  async function refuse(socket: Socket, error: PublicError): Promise<void> {
    if (refused.has(socket)) return;
    refused.add(socket);
    socket.pause();
    const owed = [...(unanswered.get(socket) ?? [])];
    // The last one may be the faulty one: its body broke off, so that nothing is to be waited for.
    const whole = owed.filter(({ request }) => request.complete);
    await Promise.all(whole.map(({ response }) => new Promise<void>((done) => response.once("close", done))));
    // A client that asked to close the connection after its last whole request was not asking for more.
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
      // Who has sent nothing has asked nothing: an answer would be taken for that of the first request.
      const isSilent = error.code === LATE && socket.bytesRead === 0;
      if (isSilent || error.code === "ECONNRESET" || !socket.writable) socket.destroy();
      else void refuse(socket, toPublicError(error));
    },
    guard(server) {
      (server as Server & { httpAllowHalfOpen: boolean }).httpAllowHalfOpen = true;
      server.prependListener("request", track);
      server.on("checkContinue", (request, response) => {
        // A client need not send a body that is refused because of its length.
        if (!(Number(request.headers["content-length"]) > BODY_BYTES_MAX)) response.writeContinue();
        server.emit("request", request, response);
      });
      // Refused like everything else that is wrong with a head, by `checkHead`.
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

/** What closes a socket with unread bytes resets the connection, and the client may never see what was sent before. */
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

/** What HTTP/1.1 asks of a head, and Node would refuse by itself. Throws PublicError. */
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
