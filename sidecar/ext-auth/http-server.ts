import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { TlsOptions } from "node:tls";
import { pushLimitHeaders } from "../../core/ratelimits/limit-headers.ts";
import { type Decided, type DecisionDeps, decide, type Passed } from "../decision/decide.ts";
import { malformedProblem, type Problem, problemResponse } from "../http/responses.ts";
import { boundConnections, type ExtAuthConnectionLimits, type ExtAuthServer } from "./connections.ts";
import { headersForApp } from "./headers-for-app.ts";
import { EXT_AUTH_PATH, type ParsedExtAuthRequest, readExtAuthRequest } from "./parse-request.ts";
import { removedHeaders } from "./removed-headers.ts";
import type { Trust } from "./trusted.ts";

/*
 * The HTTP ext-auth endpoint, from which a gateway requests the decision on a request and the identity headers for the app. Status 200
 * admits the request. Any other status rejects it; the body, `WWW-Authenticate`, `Retry-After` and `RateLimit-*` are then meant for the
 * client. `parse-request.ts` describes how gateways encode the request. The endpoint ignores the body of the gateway's request.
 */

export interface HttpExtAuthDeps {
  readonly decision: DecisionDeps;
  readonly trust: Trust;
  /** Called for a request that was not decided, because its sender is untrusted or because it does not describe a request to evaluate. */
  readonly onRejected: (
    why: ExtAuthRejection,
    detail: { readonly address: string | undefined; readonly why?: string },
  ) => void;
  /** Base URL of error types. */
  readonly docsUrl: string;
  readonly isEnding: () => boolean;
}

/** Reason why a request was not decided; `overloaded` means too many concurrent requests or connections. */
export type ExtAuthRejection = "untrusted" | "malformed" | "overloaded";

export interface HttpExtAuthLimits extends ExtAuthConnectionLimits {
  readonly headBytesMax: number;
  readonly requestHeadMs: number;
  readonly keepAliveMs: number;
  /** Maximum time for a gateway to read a response. */
  readonly responseReadMs: number;
}

/** Maximum number of body bytes that are read; a larger body closes the connection. */
const BODY_BYTES_MAX = 64 * 1024;

export interface HttpExtAuth extends ExtAuthServer {
  readonly server: Server;
}

/**
 * Creates the endpoint. `tls` are options of `tls.createServer`; if `undefined`, the endpoint does not use TLS. Throws if the certificate
 * is invalid.
 */
export function createHttpExtAuth(deps: HttpExtAuthDeps, limits: HttpExtAuthLimits, tls?: TlsOptions): HttpExtAuth {
  const options = {
    // This size leaves room for the head of the evaluated request, a copy of its target, and the gateway's own headers.
    maxHeaderSize: 2 * limits.headBytesMax + 4096,
    headersTimeout: limits.requestHeadMs,
    requestTimeout: limits.requestHeadMs,
    connectionsCheckingInterval: Math.min(5_000, limits.requestHeadMs),
    keepAliveTimeout: limits.keepAliveMs,
    insecureHTTPParser: false,
  };
  const listener = (req: IncomingMessage, res: ServerResponse): void => respond(deps, req, res);
  const secure = tls && createTlsServer({ ...options, ...tls }, listener);
  const server = secure ?? createServer(options, listener);
  // Node would silently drop headers beyond a maximum count, including credentials, so only their total size is limited.
  server.maxHeadersCount = 0;
  server.setTimeout(limits.responseReadMs);
  const { trust, onRejected } = deps;
  const onLimitReached = (address: string | undefined): void => onRejected("overloaded", { address });
  const connections = boundConnections(server, limits, { trust, onLimitReached });
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

/** Decides and responds. Never throws. */
function respond(deps: HttpExtAuthDeps, req: IncomingMessage, res: ServerResponse): void {
  const startedMs = performance.now();
  req.on("error", () => undefined);
  passOver(req);
  try {
    const asked = readQuestion(deps, req);
    if ("problem" in asked) {
      rejectCaller(deps, res, asked.problem);
      return;
    }
    const { request, by } = asked;
    const act = (decided: Decided): void => {
      try {
        if (decided.kind === "refuse") refuse(deps, res, decided);
        else admit(deps, res, decided, by === "itself" ? request.rawHeaders : undefined);
      } catch (error) {
        fail(deps, res, error, decided.requestId);
      }
    };
    const decided = decide(deps.decision, request, "request", startedMs);
    if (decided instanceof Promise) void decided.then(act);
    else act(decided);
  } catch (error) {
    fail(deps, res, error, undefined);
  }
}

/** Returns the request to evaluate, or the reason for its rejection. */
function readQuestion(
  { trust, onRejected }: HttpExtAuthDeps,
  req: IncomingMessage,
): (ParsedExtAuthRequest & { kind: "asked" }) | { readonly problem: Problem } {
  const address = req.socket.remoteAddress;
  if (!trust.isTrusted(address)) {
    onRejected("untrusted", { address });
    return { problem: UNTRUSTED };
  }
  const asked = readExtAuthRequest(req);
  if (asked.kind === "asked") return asked;
  if (asked.kind === "elsewhere") return { problem: ELSEWHERE };
  onRejected("malformed", { address, why: asked.why });
  return { problem: malformedProblem(`It is not clear which request this is about: ${asked.why}.`) };
}

const UNTRUSTED: Problem = {
  kind: "forbidden",
  detail: "This address is not a trusted gateway and may not request decisions.",
};
const ELSEWHERE: Problem = { kind: "not_found", detail: `Requests for decisions must be sent to ${EXT_AUTH_PATH}.` };

function passOver(req: IncomingMessage): void {
  let left = BODY_BYTES_MAX;
  req.on("data", (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) req.socket.destroy();
  });
}

/** Sends the response to an admitted request. `rawHeaders` are the request's headers; `undefined` if the gateway cannot remove headers. */
function admit(
  deps: HttpExtAuthDeps,
  res: ServerResponse,
  passed: Passed,
  rawHeaders: readonly string[] | undefined,
): void {
  const { requestId, shown, admitted } = passed;
  const forApp = headersForApp(passed);
  const headers = ["Content-Length", "0", "Cache-Control", "no-store", "X-Request-Id", requestId, ...forApp];
  const removed = rawHeaders === undefined ? [] : removedHeaders(rawHeaders, admitted.head, forApp);
  if (removed.length > 0) headers.push("X-Envoy-Auth-Headers-To-Remove", removed.join(","));
  if (shown !== undefined) pushLimitHeaders(headers, shown);
  send(deps, res, 200, headers, "");
}

function refuse(
  deps: HttpExtAuthDeps,
  res: ServerResponse,
  { requestId, shown, refusal }: Decided & { kind: "refuse" },
): void {
  const { status, headers, body } = problemResponse(refusal.problem, {
    requestId,
    docsUrl: deps.docsUrl,
    accept: res.req.headers.accept,
  });
  if (shown !== undefined) pushLimitHeaders(headers, shown);
  headers.push("Cache-Control", "no-store");
  send(deps, res, status, headers, body);
}

/** Responds to a request that the endpoint does not decide. */
function rejectCaller(deps: HttpExtAuthDeps, res: ServerResponse, problem: Problem): void {
  const requestId = `req_${deps.decision.nextId()}`;
  const { status, headers, body } = problemResponse(problem, { requestId, docsUrl: deps.docsUrl, accept: undefined });
  res.shouldKeepAlive = false;
  send(deps, res, status, headers, body);
}

function send(
  deps: HttpExtAuthDeps,
  res: ServerResponse,
  status: number,
  headers: readonly string[],
  body: string,
): void {
  if (deps.isEnding()) res.shouldKeepAlive = false;
  res.writeHead(status, [...headers]);
  res.end(body);
}

/** Closes the connection without a response after an internal error, because every gateway treats a missing response as a rejection. */
function fail({ decision }: HttpExtAuthDeps, res: ServerResponse, error: unknown, requestId: string | undefined): void {
  decision.onInternalError(error, requestId);
  res.destroy();
}
