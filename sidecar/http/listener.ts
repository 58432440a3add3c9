import type { Socket } from "node:net";
import { authorityOf } from "../../core/policies/check-path.ts";
import { networkOf } from "../../core/verification/ip-address.ts";
import { sharedBy } from "../../edge/places.ts";
import type { OnFault } from "../../http1/guard.ts";
import type { ParseFault } from "../../http1/message-parser.ts";
import { type Certificate, HttpServer, type ServerHandlers, type ServerLimits } from "../../http1/server.ts";
import type { ServerConnection } from "../../http1/server-connection.ts";
import type { ServerExchange } from "../../http1/server-exchange.ts";
import { Http2Connection, refuseHttp2 } from "../../http2/server-connection.ts";
import { answerProblem, endWithProblem, type RefuseParts } from "./answering.ts";
import { type Problem, versionProblem } from "./answers.ts";
import { headerIn } from "./header-in.ts";

/*
 * The listening side: HTTP/1.1 by a strict parser, and HTTP/2 by Node's, for connections that begin with its preface. What the parser refuses is answered here; what it accepts although it is ambiguous is
 * refused by `head.ts`.
 */

export interface ListenerParts extends RefuseParts {
  readonly onFault: OnFault;
  /** Whether connections from this address are those of many clients. */
  readonly isProxy: (ip: string) => boolean;
  readonly onCrowded: ServerHandlers["onCrowded"];
}

export interface ListenerLimits extends ServerLimits {
  /** The part of the connections that one address may hold, proxies excepted. */
  readonly addressShare: number;
}

/** Begins an exchange. Never throws. */
export type Begin = (exchange: ServerExchange) => void;

/** Receives the requests, one at a time per connection. */
export interface RequestHandlers {
  readonly request: Begin;
  /** The client waits for `100 Continue` before it sends its body. undefined: it is told to continue, and `request` is called. */
  readonly expectant: Begin | undefined;
  /** For WebSocket. The connection is HTTP's until the exchange is detached. */
  readonly upgrade: Begin;
}

export const CONTINUE = 100;

export function createListener(
  parts: ListenerParts,
  limits: ListenerLimits,
  handlers: RequestHandlers,
  certificate?: Certificate,
): HttpServer {
  const { answering, isProxy, onCrowded, onFault, onMalformed } = parts;
  const { pieceTurns } = answering;
  const { request, expectant, upgrade } = handlers;

  function begin(exchange: ServerExchange): void {
    const { isUpgrade, method, rawHeaders, httpVersion } = exchange;
    const expectation = httpVersion !== "1.0" ? headerIn(rawHeaders, "expect") : undefined;
    if (isUpgrade && method === "CONNECT") refuse(exchange, CONNECT_REFUSED);
    else if (namesTwoHosts(exchange)) refuse(exchange, TWO_HOSTS);
    // Other upgrades are ignored, as RFC 9110 (7.8) allows: `h2c` would carry requests past the gate. Those of HTTP/1.0 must be.
    else if (isUpgrade && method === "GET" && httpVersion !== "1.0" && isWebSocket(rawHeaders)) {
      // A stream of HTTP/2 has the others of its connection beside it.
      if (httpVersion !== "2.0") pieceTurns.leave(exchange.socket);
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
    fault: ParseFault | "late",
    connection: ServerConnection,
    exchange: ServerExchange | undefined,
  ): void {
    const problem = fault === "late" ? HEAD_TOO_SLOW : describeFault(fault, "HTTP/1.1");
    // When the response to the broken request has begun, no other response can follow it.
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
    malformed: (fault: ParseFault, exchange: ServerExchange) => refuse(exchange, describeFault(fault, "HTTP/2")),
    isClosing: answering.isClosing,
    onFrame: (socket: Socket) => pieceTurns.count(socket, 1),
    onFault,
  };

  return new HttpServer(
    limits,
    {
      http2: (socket, early) => {
        pieceTurns.leave(socket);
        const connection = new Http2Connection(socket, early, limits, http2);
        pieceTurns.watch(socket, connection);
        return connection;
      },
      refuseHttp2,
      connected: (socket) => pieceTurns.watch(socket),
      sharerOf: (ip) => (isProxy(ip) ? undefined : networkOf(ip)),
      mayHold: sharedBy(limits.addressShare),
      onCrowded,
      request: begin,
      malformed,
      isClosing: answering.isClosing,
      onDiscarded: (socket, chunks) => pieceTurns.count(socket, chunks),
      onFault,
    },
    certificate,
  );
}

const CONTINUE_EXPECTED = /^\s*100-continue\s*$/i;

const isWebSocket = (rawHeaders: readonly string[]): boolean =>
  headerIn(rawHeaders, "upgrade")?.trim().toLowerCase() === "websocket";

/**
 * Whether Host is another than the authority of a target in absolute-form. The authority would count (RFC 9112, 3.2.2), and clients send the
 * same one twice (RFC 9112, 3.2); but what stands before the gate may have gone by Host, and the app gets only one of them.
 */
function namesTwoHosts({ url, rawHeaders }: ServerExchange): boolean {
  if (url.charCodeAt(0) === SLASH) return false;
  const authority = authorityOf(url)?.toLowerCase();
  const host = headerIn(rawHeaders, "host")?.toLowerCase();
  return authority !== undefined && host !== undefined && authority !== host;
}

const SLASH = 0x2f;
const TWO_HOSTS: Problem = {
  kind: "malformed_request",
  detail: "The target of the request and its Host header name different hosts.",
};

const HEAD_TOO_SLOW: Problem = { kind: "request_timeout", detail: "The head of the request did not come in time." };

/** The parser's reasons describe only the format, and quote nothing of what was sent. */
function describeFault({ kind, reason }: ParseFault, protocol: string): Problem {
  if (kind === "version") return versionProblem;
  const detail =
    kind === "overflow"
      ? "The head of the request is too long."
      : `The request is not ${protocol}${reason === "" ? "" : `: ${reason}`}.`;
  return { kind: "malformed_request", detail };
}

const EXPECTATION_REFUSED: Problem = {
  kind: "expectation_failed",
  detail: "The only expectation that is understood is 100-continue.",
};

const CONNECT_REFUSED: Problem = {
  kind: "malformed_request",
  detail: "The gate stands in front of one app; it opens no tunnels.",
  location: "method",
};
