import { createServer, type IncomingMessage, type Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Additions } from "../app/answer-head.ts";
import { type Failed, Forwarding } from "../app/forward.ts";
import { openUpgrade } from "../app/upgrade.ts";
import type { UpstreamFailure } from "../app/upstream.ts";
import type { Limits, Timeouts } from "../config.ts";
import { answerProblem, EXPECTANT, Exchange, type GateParts, type Passage, REQUEST } from "../gate/exchange.ts";
import { type Problem, rawProblem, versionProblem } from "./answers.ts";
import { guardedMessages, guardServer } from "./guard.ts";
import { compileHeadReader } from "./head.ts";
import { endReading } from "./linger.ts";
import { RequestBody } from "./request-body.ts";

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
    connectionsCheckingInterval: Math.min(CHECK_HEADS_MS, timeouts.requestHeadMs),
    // A long upload is not a slow one; bodies that do not move are found by `watchOngoing`.
    requestTimeout: 0,
    keepAliveTimeout: timeouts.keepAliveMs,
    insecureHTTPParser: false,
    // Said here, in the shape of all other problems.
    requireHostHeader: false,
    ...guardedMessages(gate.onFault),
    // Any other upgrade is not made, as RFC 9110, section 7.8 allows: `h2c` would carry requests past the gate. Node before 24.9 has
    // no such option; there, `onUpgrade` refuses them.
    ...{ shouldUpgradeCallback: isWebSocket },
  });
  // Headers beyond this count would be dropped in silence, credentials and identity headers among them. Size is the bound.
  server.maxHeadersCount = 0;
  guardServer(server, gate.onFault);
  server.on("connection", (socket: Socket) => gate.pieceTurns.watch(socket));
  // A client that ends its direction after its request gets its answer; whether it is gone altogether is told by `Forwarding`.
  // (Node names the property in no type.)
  (server as Server & { httpAllowHalfOpen: boolean }).httpAllowHalfOpen = true;

  if (checks) {
    const begin = (passage: Passage) => (req: IncomingMessage, res: ServerResponse) =>
      inTurn(gate, res, () => new Exchange(gate, req, res, passage).begin());
    server.on("request", begin(REQUEST));
    server.on("checkContinue", begin(EXPECTANT));
  } else server.on("request", (req, res) => inTurn(gate, res, () => passUnchecked(gate, req, res)));
  server.on("checkExpectation", (_req: IncomingMessage, res: ServerResponse) =>
    inTurn(gate, res, () => refuse(gate, res, EXPECTATION_REFUSED)),
  );
  server.on("upgrade", (req, socket, head) => {
    gate.pieceTurns.leave(socket as Socket);
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

/** Node's own 30 s would let a head take twice its time. */
const CHECK_HEADS_MS = 5_000;

/** So many requests of one connection may wait for the answers before theirs; a client that sends more is hung up on. */
const WAITING_MAX = 100;
const waitingOn = new WeakMap<Socket, ServerResponse[]>();

/**
 * One request of a connection at a time, as RFC 9112 (9.3.2) allows. Clients may send the next before they have the answer
 * to the last, thousands in one packet, and each would be a connection to the app.
 */
function inTurn(gate: GateParts, res: ServerResponse, begin: () => void): void {
  // Node gives a response the connection when all answers before it have been sent.
  if (res.socket !== null) {
    begin();
    return;
  }
  const { socket } = res.req;
  const waiting = waitingOn.get(socket) ?? [];
  if (waiting.length >= WAITING_MAX) {
    socket.destroy();
    return;
  }
  waiting.push(res);
  waitingOn.set(socket, waiting);
  res.once("socket", () => {
    waiting.shift();
    // Not yet: Node is in the middle of handing the connection over.
    process.nextTick(() => {
      const problem = brokenBodies.get(res);
      if (problem === undefined) begin();
      else refuse(gate, res, problem);
    });
  });
}

/** Requests that wait, and whose bodies turned out to be malformed. */
const brokenBodies = new WeakMap<ServerResponse, Problem>();

/** The last of the answers that a connection still owes. */
const lastOwed = (socket: Duplex): ServerResponse | undefined =>
  waitingOn.get(socket as Socket)?.at(-1) ?? responseOn(socket);

/** Answers a request that never became an exchange; the connection ends with it. */
function refuse(gate: GateParts, res: ServerResponse, problem: Problem): void {
  gate.metrics.observe("MALFORMED", 0);
  answerProblem(gate, res, problem, { requestId: `req_${gate.nextId()}`, close: true, passage: REQUEST });
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

/** Connections of which the parser will read no more: how each ends is decided. */
const refused = new WeakSet<Duplex>();

/**
 * What Node's parser refused. The answers to the requests before it come first: a client would take ours for the first of
 * them. An answer that is being sent cannot be followed by another when it is to the very request that is broken.
 */
function onClientError(gate: GateParts, error: NodeJS.ErrnoException, socket: Duplex): void {
  // The parser goes on complaining while the answer to its first complaint is on its way.
  if (socket.writableEnded || refused.has(socket)) return;
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const isTooSlow = error.code === "ERR_HTTP_REQUEST_TIMEOUT";
  const owed = lastOwed(socket);
  if (isTooSlow && owed === undefined && (socket as Socket).bytesRead === 0) {
    // It asked for nothing: an answer would be taken for one to whatever it sends next.
    socket.destroy();
    return;
  }
  refused.add(socket);
  const problem = isTooSlow ? HEAD_TOO_SLOW : describeParserError(error);
  if (owed === undefined) {
    gate.metrics.observe("MALFORMED", 0);
    endWith(gate, socket, problem);
  } else if (owed.req.complete) {
    socket.pause();
    owed.once("finish", () => {
      gate.metrics.observe("MALFORMED", 0);
      endWith(gate, socket, problem);
    });
  } else if (owed.socket === null) brokenBodies.set(owed, problem);
  else if (owed.headersSent) socket.destroy();
  else refuse(gate, owed, problem);
}

const HEAD_TOO_SLOW: Problem = { kind: "request_timeout", detail: "The head of the request did not come in time." };

/** The parser's reasons are about the format only, and quote nothing of what was sent. */
function describeParserError(error: NodeJS.ErrnoException & { reason?: string }): Problem {
  if (error.code === "HPE_INVALID_VERSION") return versionProblem;
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

function endWith(gate: GateParts, socket: Duplex, problem: Problem): void {
  socket.on("error", () => socket.destroy());
  if (!socket.writable) return;
  socket.write(rawProblem(problem, { requestId: `req_${gate.nextId()}`, docsUrl: gate.docsUrl }));
  endReading(socket as Socket);
}
