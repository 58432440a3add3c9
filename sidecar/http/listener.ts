import { createServer, type IncomingMessage, type Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { guardedMessages, guardServer, type OnFault } from "../../http1/guard.ts";
import { endWithProblem, type RefuseParts, refuse } from "./answering.ts";
import type { Problem } from "./answers.ts";
import { onClientError } from "./client-errors.ts";
import { endReading } from "./linger.ts";
import { type Begin, inTurn, owesAnswer } from "./turns.ts";

/*
 * The listening side: HTTP/1.1 by Node's parser, in its strict mode. What the parser refuses is answered here; what
 * it accepts although it is ambiguous is refused by `head.ts`.
 */

export interface ListenerParts extends RefuseParts {
  readonly onFault: OnFault;
}

export interface ListenerLimits {
  readonly headBytesMax: number;
  /** For a client to send the head of a request. */
  readonly requestHeadMs: number;
  /** How long a connection may be idle between requests. */
  readonly keepAliveMs: number;
}

/** Receives the requests, one at a time per connection. */
export interface RequestHandlers {
  readonly request: Begin;
  /** The client waits for `100 Continue` before it sends its body. undefined: it is told to continue, and `request` is called. */
  readonly expectant: Begin | undefined;
  /** For WebSocket. `res` responds on the connection, which is no longer parsed; `socket` and `head` are what follows. */
  readonly upgrade: (req: IncomingMessage, res: ServerResponse, socket: Duplex, head: Buffer) => void;
}

export function createListener(parts: ListenerParts, limits: ListenerLimits, handlers: RequestHandlers): Server {
  const { answering, onFault } = parts;
  const { pieceTurns } = answering;
  const server = createServer({
    maxHeaderSize: limits.headBytesMax,
    headersTimeout: limits.requestHeadMs,
    connectionsCheckingInterval: Math.min(CHECK_HEADS_MS, limits.requestHeadMs),
    // A long upload is not a slow one; `watchOngoing` finds bodies that do not move.
    requestTimeout: 0,
    keepAliveTimeout: limits.keepAliveMs,
    insecureHTTPParser: false,
    // Answered by us, in the form of all other problems.
    requireHostHeader: false,
    ...guardedMessages(onFault),
    // Other upgrades are ignored, as RFC 9110 (7.8) allows: `h2c` would carry requests past the gate. Node before 24.9 has
    // no such option; there, `onUpgrade` refuses them.
    ...{ shouldUpgradeCallback: isWebSocket },
  });
  // Headers beyond this count would be dropped silently, including credentials and identity headers. Size is the limit instead.
  server.maxHeadersCount = 0;
  guardServer(server, onFault);
  server.on("connection", (socket: Socket) => pieceTurns.watch(socket));
  // A client that ends its direction after its request gets its response; `Forwarding` finds out whether it is gone.
  // (Node has no type for this property.)
  (server as Server & { httpAllowHalfOpen: boolean }).httpAllowHalfOpen = true;

  const { request, expectant, upgrade } = handlers;
  server.on("request", (req, res) => inTurn(parts, req, res, request));
  if (expectant !== undefined) server.on("checkContinue", (req, res) => inTurn(parts, req, res, expectant));
  server.on("checkExpectation", (req, res) => inTurn(parts, req, res, refuseExpectation));
  server.on("upgrade", (req, socket, head) => {
    pieceTurns.leave(socket as Socket);
    // The connection is no longer HTTP's, so a response that is still owed cannot be sent on it.
    if (owesAnswer(socket)) socket.destroy();
    else onUpgrade(req, socket, head);
  });
  server.on("connect", (_req, socket) => {
    if (owesAnswer(socket)) socket.destroy();
    else endWithProblem(answering, socket, CONNECT_REFUSED);
  });
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => onClientError(parts, error, socket));
  return server;

  function refuseExpectation(_req: IncomingMessage, res: ServerResponse): void {
    refuse(parts, res, EXPECTATION_REFUSED);
  }

  function onUpgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on("error", () => socket.destroy());
    if (isWebSocket(req)) upgrade(req, answerOn(socket as Socket, req), socket, head);
    else endWithProblem(answering, socket, UPGRADE_REFUSED);
  }
}

/** A response on the socket, so that refusals and an app that declines are answered like other requests. */
function answerOn(socket: Socket, req: IncomingMessage): ServerResponse {
  const res = new ServerResponse(req);
  res.assignSocket(socket);
  res.on("finish", () => {
    res.detachSocket(socket);
    endReading(socket);
  });
  return res;
}

/** With Node's own 30 s a head could take twice its time. */
const CHECK_HEADS_MS = 5_000;

const isWebSocket = (req: IncomingMessage): boolean =>
  req.method === "GET" && req.headers.upgrade?.trim().toLowerCase() === "websocket";

const EXPECTATION_REFUSED: Problem = {
  kind: "expectation_failed",
  detail: "The only expectation that is understood is 100-continue.",
};

const CONNECT_REFUSED: Problem = {
  kind: "malformed_request",
  detail: "The gate stands in front of one app; it opens no tunnels.",
  location: "method",
};

const UPGRADE_REFUSED: Problem = { kind: "malformed_request", detail: "The only upgrade made here is to WebSocket." };
