import type { Socket } from "node:net";
import { networkOf } from "../../core/verification/ip-address.ts";
import { sharedBy } from "../../edge/concurrency-limiter.ts";
import type { OnInternalError } from "../../http/http1/guard.ts";
import type { ParseError } from "../../http/http1/message-parser.ts";
import { type Certificate, HttpServer, type ServerHandlers, type ServerLimits } from "../../http/http1/server.ts";
import type { ServerConnection } from "../../http/http1/server-connection.ts";
import type { ServerExchange } from "../../http/http1/server-exchange.ts";
import { Http2Connection, refuseHttp2 } from "../../http/http2/server-connection.ts";
import { headerIn } from "./header-in.ts";
import { answerProblem, endWithProblem, type RefuseDeps } from "./responding.ts";
import { type Problem, versionProblem } from "./responses.ts";

/*
 * Accepts client connections: HTTP/1.1 with a strict parser, and HTTP/2 with Node's parser if a connection begins with the HTTP/2 preface.
 * Responds to requests that a parser rejects. `head.ts` rejects ambiguous requests that a parser accepts.
 */

export interface ListenerDeps extends RefuseDeps {
  readonly onInternalError: OnInternalError;
  /** Returns whether this address is a proxy, whose connections carry the requests of many clients. */
  readonly isProxy: (ip: string) => boolean;
  readonly onLimitReached: ServerHandlers["onLimitReached"];
}

export interface ListenerLimits extends ServerLimits {
  /** Maximum share of the connections that one address may use. Proxies are exempt. */
  readonly addressShare: number;
}

/** Begins an exchange. Must never throw. */
export type Begin = (exchange: ServerExchange) => void;

/** Handlers of requests. The requests of an HTTP/1.1 connection are handled one at a time. */
export interface RequestHandlers {
  readonly request: Begin;
  /** Called for a client that waits for `100 Continue` before it sends its body. If `undefined`, the gate sends 100 and calls `request`. */
  readonly expectant: Begin | undefined;
  /** Called for a WebSocket upgrade. The connection remains an HTTP connection until the exchange is detached. */
  readonly upgrade: Begin;
}

export const CONTINUE = 100;

export function createListener(
  deps: ListenerDeps,
  limits: ListenerLimits,
  handlers: RequestHandlers,
  certificate?: Certificate,
): HttpServer {
  const { answering, isProxy, onLimitReached, onInternalError, onMalformed } = deps;
  const { readScheduler } = answering;
  const { request, expectant, upgrade } = handlers;

  function begin(exchange: ServerExchange): void {
    const { isUpgrade, method, rawHeaders, httpVersion } = exchange;
    const expectation = httpVersion !== "1.0" ? headerIn(rawHeaders, "expect") : undefined;
    if (isUpgrade && method === "CONNECT") refuse(exchange, CONNECT_REFUSED);
    // Other upgrades are ignored, as RFC 9110, section 7.8, allows: after an upgrade to `h2c`, requests would bypass the gate. Upgrade
    // requests over HTTP/1.0 must be ignored.
    else if (isUpgrade && method === "GET" && httpVersion !== "1.0" && isWebSocket(rawHeaders)) {
      // An HTTP/2 connection stays in the read scheduler, because it carries further streams.
      if (httpVersion !== "2.0") readScheduler.leave(exchange.socket);
      upgrade(exchange);
    } else if (expectation === undefined) request(exchange);
    else if (!CONTINUE_EXPECTED.test(expectation)) refuse(exchange, EXPECTATION_REFUSED);
    else if (expectant !== undefined) expectant(exchange);
    else {
      exchange.writeInterim(CONTINUE, "");
      request(exchange);
    }
  }

  function refuse(exchange: ServerExchange, problem: Problem): void {
    onMalformed();
    answerProblem(answering, exchange, problem, { requestId: `req_${answering.nextId()}`, close: true });
  }

  function malformed(
    fault: ParseError | "late",
    connection: ServerConnection,
    exchange: ServerExchange | undefined,
  ): void {
    const problem = fault === "late" ? HEAD_TOO_SLOW : describeFault(fault, "HTTP/1.1");
    if (exchange === undefined) {
      onMalformed();
      endWithProblem(answering, connection, problem);
    } else if (exchange.headersSent) exchange.socket.destroy();
    else {
      exchange.abandon();
      refuse(exchange, problem);
    }
  }

  const http2 = {
    request: begin,
    malformed: (fault: ParseError, exchange: ServerExchange) => refuse(exchange, describeFault(fault, "HTTP/2")),
    isClosing: answering.isClosing,
    onFrame: (socket: Socket) => readScheduler.count(socket, 1),
    onInternalError,
  };

  return new HttpServer(
    limits,
    {
      http2: (socket, early) => {
        readScheduler.leave(socket);
        const connection = new Http2Connection(socket, early, limits, http2);
        readScheduler.watch(socket, connection);
        return connection;
      },
      refuseHttp2,
      connected: (socket) => readScheduler.watch(socket),
      sharerOf: (ip) => (isProxy(ip) ? undefined : networkOf(ip)),
      mayAcquire: sharedBy(limits.addressShare),
      onLimitReached,
      request: begin,
      malformed,
      isClosing: answering.isClosing,
      onDiscarded: (socket, chunks) => readScheduler.count(socket, chunks),
      onInternalError,
    },
    certificate,
  );
}

const CONTINUE_EXPECTED = /^\s*100-continue\s*$/i;

const isWebSocket = (rawHeaders: readonly string[]): boolean =>
  headerIn(rawHeaders, "upgrade")?.trim().toLowerCase() === "websocket";

const HEAD_TOO_SLOW: Problem = { kind: "request_timeout", detail: "The head of the request did not arrive in time." };

/** Describes a parse error. The parser's reasons describe only the format, and quote no received data. */
function describeFault({ kind, reason }: ParseError, protocol: string): Problem {
  if (kind === "version") return versionProblem;
  const detail =
    kind === "overflow"
      ? "The head of the request is too long."
      : `The request is not ${protocol}${reason === "" ? "" : `: ${reason}`}.`;
  return { kind: "malformed_request", detail };
}

const EXPECTATION_REFUSED: Problem = {
  kind: "expectation_failed",
  detail: "The only supported expectation is 100-continue.",
};

const CONNECT_REFUSED: Problem = {
  kind: "malformed_request",
  detail: "The gate does not support CONNECT, because it forwards requests to one app only.",
  location: "method",
};
