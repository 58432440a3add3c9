import { createServer, type IncomingMessage, type Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Additions } from "./answer-head.ts";
import { type Problem, rawProblem } from "./answers.ts";
import type { Limits, Timeouts } from "./config.ts";
import { type Failed, Forwarding } from "./forward.ts";
import { guardedMessages, guardServer } from "./guard.ts";
import { compileHeadReader } from "./head.ts";
import { answerProblem, EXPECTANT, Exchange, type GateParts, type Passage, REQUEST } from "./proxy.ts";
import { RequestBody } from "./request-body.ts";
import { openUpgrade } from "./upgrade.ts";
import type { UpstreamFailure } from "./upstream.ts";

/*
 * The listening side: HTTP/1.1 as Node's parser reads it, in its strict mode. What the parser refuses is answered here; what
 * it lets pass although it can be read in two ways is refused by `head.ts`.
 */

export interface ServerOptions {
  readonly gate: GateParts;
  readonly timeouts: Timeouts;
  readonly limits: Limits;
  /** false: everything goes straight to the app. */
  readonly checks: boolean;
}

export function createGateServer({ gate, timeouts, limits, checks }: ServerOptions): Server {
  const server = createServer({
    maxHeaderSize: limits.headBytesMax,
    headersTimeout: timeouts.requestHeadMs,
    // A long upload is not a slow one; bodies that do not move are found by `watchOngoing`.
    requestTimeout: 0,
    keepAliveTimeout: timeouts.keepAliveMs,
    insecureHTTPParser: false,
    // Said here, in the shape of all other problems.
    requireHostHeader: false,
    ...guardedMessages(gate.onFault),
    // Any other upgrade is not made, as RFC 9110 (7.8) allows: `h2c` would carry requests past the gate. Node before 24.9 has
    // no such option; there, `onUpgrade` refuses them.
    ...{ shouldUpgradeCallback: isWebSocket },
  });
  // Headers beyond this count would be dropped in silence, credentials and identity headers among them. Size is the bound.
  server.maxHeadersCount = 0;
  guardServer(server, gate.onFault);

  if (checks) {
    const begin = (passage: Passage) => (req: IncomingMessage, res: ServerResponse) =>
      inTurn(res, () => new Exchange(gate, req, res, passage).begin());
    server.on("request", begin(REQUEST));
    server.on("checkContinue", begin(EXPECTANT));
  } else server.on("request", (req, res) => inTurn(res, () => passUnchecked(gate, req, res)));
  server.on("upgrade", (req, socket, head) => {
    // The connection is no longer HTTP's, and an answer is still to be sent on it: the two cannot both be had.
    if (owesAnswer(socket)) socket.destroy();
    else onUpgrade(gate, timeouts, req, socket, head);
  });
  server.on("connect", (_req, socket) => {
    if (owesAnswer(socket)) socket.destroy();
    else endWith(gate, socket, CONNECT_REFUSED);
  });
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => onClientError(gate, error, socket));
  return server;
}

/** So many requests of one connection may wait for the answers before theirs; a client that sends more is hung up on. */
const WAITING_MAX = 100;
const waitingOn = new WeakMap<Socket, number>();

/**
 * One request of a connection at a time, as RFC 9112 (9.3.2) allows. Clients may send the next before they have the answer
 * to the last, thousands in one packet, and each would be a connection to the app.
 */
function inTurn(res: ServerResponse, begin: () => void): void {
  // Node gives a response the connection when all answers before it have been sent.
  if (res.socket !== null) {
    begin();
    return;
  }
  const { socket } = res.req;
  const waiting = (waitingOn.get(socket) ?? 0) + 1;
  if (waiting > WAITING_MAX) {
    socket.destroy();
    return;
  }
  waitingOn.set(socket, waiting);
  res.once("socket", () => {
    waitingOn.set(socket, (waitingOn.get(socket) ?? 1) - 1);
    // Not yet: Node is in the middle of handing the connection over.
    process.nextTick(begin);
  });
}

const CONNECT_REFUSED: Problem = {
  kind: "malformed_request",
  detail: "The gate stands in front of one app; it opens no tunnels.",
  location: "method",
};

const isWebSocket = (req: IncomingMessage): boolean =>
  req.method === "GET" && req.headers.upgrade?.trim().toLowerCase() === "websocket";

const readAnyHead = compileHeadReader([]);

function passUnchecked(gate: GateParts, req: IncomingMessage, res: ServerResponse): void {
  const head = readAnyHead(req.rawHeaders, req.httpVersion);
  const body = head.hasBody ? new RequestBody(gate, req, head.bodyLength) : null;
  const extras = { requestId: undefined, shown: undefined, admission: undefined };
  const forwarding = new Forwarding(gate, res, body, extras, performance.now());
  forwarding.send({ method: req.method ?? "", target: req.url ?? "", headers: head.forwarded, address: "" });
}

function onUpgrade(gate: GateParts, timeouts: Timeouts, req: IncomingMessage, socket: Duplex, head: Buffer): void {
  socket.on("error", () => socket.destroy());
  // So that refusals and an app that declines are answered as any other request is.
  const res = new ServerResponse(req);
  res.assignSocket(socket as Socket);
  res.on("finish", () => {
    res.detachSocket(socket as Socket);
    endReading(socket as Socket);
  });
  const passage: Passage = {
    kind: "upgrade",
    open: (upgrade) => {
      const { requestId, shown, address } = upgrade;
      const onFailure = (failed: Failed): void =>
        answerUpstreamFailure(gate, res, failed, { requestId, shown, passage });
      if (socket.destroyed) return;
      if (!gate.upgrades.tryTake(address)) {
        onFailure({ failure: "busy", why: "" });
        return;
      }
      socket.once("close", () => gate.upgrades.release(address));
      const { headersMs } = timeouts;
      const { upstream, ongoing, onFault } = gate;
      const parts = { origin: upstream.origin, ongoing, headersMs, onFailure, onFault };
      openUpgrade(parts, { req, res, socket, head }, upgrade);
    },
  };
  if (isWebSocket(req)) new Exchange(gate, req, res, passage).begin();
  else endWith(gate, socket, { kind: "malformed_request", detail: "The only upgrade made here is to WebSocket." });
}

const UPSTREAM_PROBLEMS: Readonly<Record<UpstreamFailure | "stalled", Problem>> = {
  unreachable: { kind: "upstream_unreachable", detail: "The app behind the gate cannot be reached." },
  aborted: { kind: "upstream_unreachable", detail: "The app behind the gate cannot be reached." },
  unusable: {
    kind: "upstream_invalid_answer",
    detail: "The app behind the gate answered in a way that cannot be passed on.",
  },
  timeout: { kind: "upstream_timeout", detail: "The app behind the gate did not answer in time." },
  busy: { kind: "upstream_busy", detail: "No place at the app behind the gate became free in time.", retryAfterS: 1 },
  stalled: { kind: "request_timeout", detail: "The rest of the body did not come in time.", location: "body" },
};

/** Answers for an app that did not, and counts it. */
export function answerUpstreamFailure(
  gate: GateParts,
  res: ServerResponse,
  { failure, why }: Failed,
  { requestId = `req_${gate.nextId()}`, shown, passage = REQUEST }: Additions & { passage?: Passage },
): void {
  if (failure !== "aborted") gate.metrics.upstreamFailures[failure] += 1;
  if (failure === "unusable") gate.onUnusableAnswer(why, requestId);
  answerProblem(gate, res, UPSTREAM_PROBLEMS[failure], { requestId, shown, passage, close: failure === "stalled" });
}

/** What Node's parser refused. An answer that is being sent on the connection cannot be followed by another. */
function onClientError(gate: GateParts, error: NodeJS.ErrnoException, socket: Duplex): void {
  // The parser goes on complaining while the answer to its first complaint is on its way.
  if (socket.writableEnded) return;
  if (error.code === "ECONNRESET" || !socket.writable || isAnswering(socket)) {
    socket.destroy();
    return;
  }
  gate.metrics.observe("MALFORMED", 0);
  endWith(gate, socket, error.code === "ERR_HTTP_REQUEST_TIMEOUT" ? HEAD_TOO_SLOW : describeParserError(error));
}

const HEAD_TOO_SLOW: Problem = { kind: "request_timeout", detail: "The head of the request did not come in time." };

/** The parser's reasons are about the format only, and quote nothing of what was sent. */
function describeParserError(error: NodeJS.ErrnoException & { reason?: string }): Problem {
  const detail =
    error.code === "HPE_HEADER_OVERFLOW"
      ? "The head of the request is too long."
      : `The request is not HTTP/1.1${error.reason === undefined ? "" : `: ${error.reason}`}.`;
  return { kind: "malformed_request", detail };
}

/** Node keeps the response whose turn it is on the socket, and looks there itself before it answers a client error. */
const responseOn = (socket: Duplex): ServerResponse | undefined =>
  (socket as Duplex & { _httpMessage?: ServerResponse | null })._httpMessage ?? undefined;

const owesAnswer = (socket: Duplex): boolean => responseOn(socket) !== undefined;
const isAnswering = (socket: Duplex): boolean => responseOn(socket)?.headersSent === true;

function endWith(gate: GateParts, socket: Duplex, problem: Problem): void {
  socket.on("error", () => socket.destroy());
  if (!socket.writable) return;
  socket.write(rawProblem(problem, { requestId: `req_${gate.nextId()}`, docsUrl: gate.docsUrl }));
  endReading(socket as Socket);
}

const LINGER_MS = 2_000;

/**
 * Ends our direction, and takes no notice of what still comes until the client ends its own: closing a socket with unread
 * bytes resets it, and the client may then never see the answer. Not for ever, though.
 */
function endReading(socket: Socket): void {
  socket.removeAllListeners("data");
  socket.on("data", () => {});
  socket.resume();
  socket.end();
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}
