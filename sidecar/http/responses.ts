import { retryAfter } from "../../core/api/retry.ts";
import { ERROR_KINDS, type ErrorKind } from "../../core/errors.ts";
import { pushLimitHeaders, type ShownLimit } from "../../core/ratelimits/limit-headers.ts";
import type { ServerExchange } from "../../http/http1/server-exchange.ts";
import { grpcStatus, isGrpc } from "./grpc-problem.ts";
import { headerIn } from "./header-in.ts";
import { linesOf } from "./header-lines.ts";

/* Builds the sidecar's own responses. Their error bodies have the form that the v2 API uses (api-v2.md, section 4.1). */

export interface Problem {
  readonly kind: ErrorKind;
  /** Explanation for people, which never contains a secret. */
  readonly detail: string;
  /** Location of the problem in the request, for kinds with status 400 or 408. */
  readonly location?: string;
  readonly authenticate?: string;
  /** Value of `Retry-After` in integer seconds, at least 1. */
  readonly retryAfterS?: number | undefined;
}

export const malformedProblem = (detail: string, location = "header"): Problem => ({
  kind: "malformed_request",
  detail,
  location,
});

/** Problem for unsupported HTTP versions. The parser accepts some of them, and the app would receive such a request as HTTP/1.1. */
export const versionProblem: Problem = {
  kind: "http_version_not_supported",
  detail: "The gate supports HTTP/2, HTTP/1.1 and HTTP/1.0.",
};

/** Returns the problem as a complete response, without the headers that depend on the connection. */
export function problemResponse(
  problem: Problem,
  { requestId, docsUrl, accept }: { requestId: string; docsUrl: string; accept: string | undefined },
): { status: number; headers: string[]; body: string } {
  const { status, title } = ERROR_KINDS[problem.kind];
  const hasEntries = status === 400 || status === 408;
  const body = JSON.stringify({
    meta: { requestId },
    error: {
      title,
      detail: problem.detail,
      status,
      type: `${docsUrl}/errors/${problem.kind}`,
      ...(hasEntries ? { errors: [{ location: problem.location ?? "header", message: problem.detail }] } : {}),
    },
  });
  const headers = [
    "Content-Type",
    wantsProblemJson(accept) ? "application/problem+json" : "application/json",
    "Content-Length",
    String(Buffer.byteLength(body)),
    ...problemHeaders(problem, requestId),
  ];
  return { status, headers, body };
}

/** Returns the headers of a problem. They do not depend on the format of its body. */
function problemHeaders(problem: Problem, requestId: string): string[] {
  const headers = ["X-Request-Id", requestId];
  if (problem.authenticate !== undefined) headers.push("WWW-Authenticate", problem.authenticate);
  if (problem.retryAfterS !== undefined) headers.push("Retry-After", retryAfter(problem.retryAfterS));
  return headers;
}

const wantsProblemJson = (accept: string | undefined): boolean =>
  accept !== undefined && (accept.includes("application/problem+json") || accept.includes("application/*"));

/** Sends a problem as the complete response to a request. */
export function sendProblem(
  exchange: ServerExchange,
  problem: Problem,
  context: { requestId: string; docsUrl: string; shown?: ShownLimit | undefined },
): void {
  if (exchange.httpVersion === "2.0" && isGrpc(headerIn(exchange.rawHeaders, "content-type"))) {
    sendGrpcProblem(exchange, problem, context);
    return;
  }
  const { status, headers, body } = problemResponse(problem, { ...context, accept: acceptOf(exchange.rawHeaders) });
  if (context.shown !== undefined) pushLimitHeaders(headers, context.shown);
  const content = Buffer.from(body);
  exchange.begin({ status, reason: undefined, lines: linesOf(headers), length: content.length, isDated: false });
  exchange.end(content);
}

function sendGrpcProblem(
  exchange: ServerExchange,
  problem: Problem,
  { requestId, shown }: { requestId: string; shown?: ShownLimit | undefined },
): void {
  const headers = [...grpcStatus(problem), ...problemHeaders(problem, requestId)];
  if (shown !== undefined) pushLimitHeaders(headers, shown);
  exchange.begin({ status: 200, reason: undefined, lines: linesOf(headers), length: undefined, isDated: false });
  exchange.end();
}

const acceptOf = (rawHeaders: readonly string[]): string | undefined => headerIn(rawHeaders, "accept");

/** Returns the problem as bytes for a connection on which no valid request arrived. The caller then closes the connection. */
export function rawProblem(problem: Problem, context: { requestId: string; docsUrl: string }): string {
  const { status, headers, body } = problemResponse(problem, { ...context, accept: undefined });
  return `HTTP/1.1 ${status} ${ERROR_KINDS[problem.kind].title}\r\nConnection: close\r\n${linesOf(headers)}\r\n${body}`;
}
