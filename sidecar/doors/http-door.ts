import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { TlsOptions } from "node:tls";
import { pushLimitHeaders } from "../../core/ratelimits/limit-headers.ts";
import { type Decided, type DecisionParts, decide, type Passed } from "../gate/decide.ts";
import { malformedProblem, type Problem, problemAnswer } from "../http/answers.ts";
import { type Asked, DOOR_PATH, readAsked } from "./asked-request.ts";
import { boundConnections, type Door, type DoorConnectionLimits } from "./door-connections.ts";
import { headersForApp } from "./headers-for-app.ts";
import { removedHeaders } from "./removed-headers.ts";
import type { Trust } from "./trusted.ts";

/*
 * The HTTP door: a gateway asks whether a request may pass, and how the app is told who called. 200 says that it may; every other
 * status refuses it, with the body, `WWW-Authenticate`, `Retry-After` and `RateLimit-*` for the client. `asked-request.ts` says how
 * the request is told. The body of the question is ignored.
 */

export interface HttpDoorParts {
  readonly decision: DecisionParts;
  readonly trust: Trust;
  /** A question that was not decided: of an address that may not ask, or one that does not tell which request it is about. */
  readonly onTurnedAway: (
    why: TurnedAway,
    detail: { readonly address: string | undefined; readonly why?: string },
  ) => void;
  /** The base URL of error types. */
  readonly docsUrl: string;
  readonly isEnding: () => boolean;
}

/** `crowded`: there were too many questions or connections at once. */
export type TurnedAway = "untrusted" | "unclear" | "crowded";

export interface HttpDoorLimits extends DoorConnectionLimits {
  readonly headBytesMax: number;
  readonly requestHeadMs: number;
  readonly keepAliveMs: number;
  /** For a gateway to take an answer. */
  readonly answerIdleMs: number;
}

/** More of a body is not read: the connection is closed. */
const BODY_BYTES_MAX = 64 * 1024;

export interface HttpDoor extends Door {
  readonly server: Server;
}

/** `tls`: what `tls.createServer` takes; without it the door speaks no TLS. Throws when its certificate is not usable. */
export function createHttpDoor(parts: HttpDoorParts, limits: HttpDoorLimits, tls?: TlsOptions): HttpDoor {
  const options = {
    // The head of the request that it is about, its target once more, and what the gateway adds.
    maxHeaderSize: 2 * limits.headBytesMax + 4096,
    headersTimeout: limits.requestHeadMs,
    requestTimeout: limits.requestHeadMs,
    connectionsCheckingInterval: Math.min(5_000, limits.requestHeadMs),
    keepAliveTimeout: limits.keepAliveMs,
    insecureHTTPParser: false,
  };
  const listener = (req: IncomingMessage, res: ServerResponse): void => answer(parts, req, res);
  const secure = tls && createTlsServer({ ...options, ...tls }, listener);
  const server = secure ?? createServer(options, listener);
  // Headers beyond a count would be dropped silently, credentials among them. Size is the limit instead.
  server.maxHeadersCount = 0;
  server.setTimeout(limits.answerIdleMs);
  const { trust, onTurnedAway } = parts;
  const onCrowded = (address: string | undefined): void => onTurnedAway("crowded", { address });
  const connections = boundConnections(server, limits, { trust, onCrowded });
  return {
    server,
    setSecureContext: secure && ((certificate) => secure.setSecureContext(certificate)),
    end: async (graceMs) => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      const cutOff = setTimeout(() => connections.closeAll(), graceMs);
      await closed;
      clearTimeout(cutOff);
    },
  };
}

/** Never throws. */
function answer(parts: HttpDoorParts, req: IncomingMessage, res: ServerResponse): void {
  const startedMs = performance.now();
  req.on("error", () => undefined);
  passOver(req);
  try {
    const asked = readQuestion(parts, req);
    if ("problem" in asked) {
      turnAway(parts, res, asked.problem);
      return;
    }
    const { request, by } = asked;
    const act = (decided: Decided): void => {
      try {
        if (decided.kind === "refuse") refuse(parts, res, decided);
        else admit(parts, res, decided, by === "itself" ? request.rawHeaders : undefined);
      } catch (error) {
        fail(parts, res, error, decided.requestId);
      }
    };
    const decided = decide(parts.decision, request, "request", startedMs);
    if (decided instanceof Promise) void decided.then(act);
    else act(decided);
  } catch (error) {
    fail(parts, res, error, undefined);
  }
}

/** The request that is asked about, or why the question is turned away. */
function readQuestion(
  { trust, onTurnedAway }: HttpDoorParts,
  req: IncomingMessage,
): (Asked & { kind: "asked" }) | { readonly problem: Problem } {
  const address = req.socket.remoteAddress;
  if (!trust.isTrusted(address)) {
    onTurnedAway("untrusted", { address });
    return { problem: UNTRUSTED };
  }
  const asked = readAsked(req);
  if (asked.kind === "asked") return asked;
  if (asked.kind === "elsewhere") return { problem: ELSEWHERE };
  onTurnedAway("unclear", { address, why: asked.why });
  return { problem: malformedProblem(`It is not clear which request this is about: ${asked.why}.`) };
}

const UNTRUSTED: Problem = {
  kind: "forbidden",
  detail: "This address may not ask the gate: it is not among its trusted gateways.",
};
const ELSEWHERE: Problem = { kind: "not_found", detail: `Questions are asked at ${DOOR_PATH}.` };

function passOver(req: IncomingMessage): void {
  let left = BODY_BYTES_MAX;
  req.on("data", (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) req.socket.destroy();
  });
}

/** `rawHeaders`: of the request, for a gateway that can be told what to remove of them. */
function admit(
  parts: HttpDoorParts,
  res: ServerResponse,
  passed: Passed,
  rawHeaders: readonly string[] | undefined,
): void {
  const { requestId, shown, onward } = passed;
  const told = headersForApp(passed);
  const headers = ["Content-Length", "0", "Cache-Control", "no-store", "X-Request-Id", requestId, ...told];
  const removed = rawHeaders === undefined ? [] : removedHeaders(rawHeaders, onward.head, told);
  if (removed.length > 0) headers.push("X-Envoy-Auth-Headers-To-Remove", removed.join(","));
  if (shown !== undefined) pushLimitHeaders(headers, shown);
  send(parts, res, 200, headers, "");
}

function refuse(
  parts: HttpDoorParts,
  res: ServerResponse,
  { requestId, shown, refusal }: Decided & { kind: "refuse" },
): void {
  const { status, headers, body } = problemAnswer(refusal.problem, {
    requestId,
    docsUrl: parts.docsUrl,
    accept: res.req.headers.accept,
  });
  if (shown !== undefined) pushLimitHeaders(headers, shown);
  headers.push("Cache-Control", "no-store");
  send(parts, res, status, headers, body);
}

/** Answers a question that is not decided. */
function turnAway(parts: HttpDoorParts, res: ServerResponse, problem: Problem): void {
  const requestId = `req_${parts.decision.nextId()}`;
  const { status, headers, body } = problemAnswer(problem, { requestId, docsUrl: parts.docsUrl, accept: undefined });
  res.shouldKeepAlive = false;
  send(parts, res, status, headers, body);
}

function send(
  parts: HttpDoorParts,
  res: ServerResponse,
  status: number,
  headers: readonly string[],
  body: string,
): void {
  if (parts.isEnding()) res.shouldKeepAlive = false;
  res.writeHead(status, [...headers]);
  res.end(body);
}

/** No answer is a refusal for every gateway. */
function fail({ decision }: HttpDoorParts, res: ServerResponse, error: unknown, requestId: string | undefined): void {
  decision.onFault(error, requestId);
  res.destroy();
}
