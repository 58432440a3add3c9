import type { ServerResponse } from "node:http";
import { ERROR_KINDS, type ErrorKind } from "../../core/errors.ts";

import { pushLimitHeaders, type ShownLimit } from "../../core/ratelimits/limit-headers.ts";

/*
 * The sidecar's own responses: error bodies in the form of the v2 API (api-v2.md section 4.1).
 */

export interface Problem {
  readonly kind: ErrorKind;
  /** For a person; never a secret. */
  readonly detail: string;
  /** The location of the fault, for the kinds with status 400 and 408. */
  readonly location?: string;
  readonly authenticate?: string;
  /** Whole seconds, at least 1. */
  readonly retryAfterS?: number | undefined;
}

export const malformedProblem = (detail: string, location = "header"): Problem => ({
  kind: "malformed_request",
  detail,
  location,
});

/** The parser accepts some other versions, which would reach the app as 1.1. */
export const versionProblem: Problem = {
  kind: "http_version_not_supported",
  detail: "The gate speaks HTTP/1.1 and HTTP/1.0.",
};

/** The problem as a whole response, without the headers that depend on the connection. */
export function problemAnswer(
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
    "X-Request-Id",
    requestId,
  ];
  if (problem.authenticate !== undefined) headers.push("WWW-Authenticate", problem.authenticate);
  if (problem.retryAfterS !== undefined) headers.push("Retry-After", String(problem.retryAfterS));
  return { status, headers, body };
}

const wantsProblemJson = (accept: string | undefined): boolean =>
  accept !== undefined && (accept.includes("application/problem+json") || accept.includes("application/*"));

/** Sends a problem as the whole response to a request. `close` ends the connection afterwards. */
export function sendProblem(
  res: ServerResponse,
  problem: Problem,
  context: { requestId: string; docsUrl: string; shown?: ShownLimit | undefined; close?: boolean },
): void {
  const answer = problemAnswer(problem, { ...context, accept: res.req.headers.accept });
  if (context.shown !== undefined) pushLimitHeaders(answer.headers, context.shown);
  if (context.close === true) {
    res.shouldKeepAlive = false;
    answer.headers.push("Connection", "close");
  }
  res.writeHead(answer.status, answer.headers);
  res.end(answer.body);
}

/** The same as bytes, for a connection on which no request could be read. The connection ends with it. */
export function rawProblem(problem: Problem, context: { requestId: string; docsUrl: string }): string {
  const { status, headers, body } = problemAnswer(problem, { ...context, accept: undefined });
  const lines = [`HTTP/1.1 ${status} ${ERROR_KINDS[problem.kind].title}`, "Connection: close"];
  for (let i = 0; i < headers.length; i += 2) lines.push(`${headers[i]}: ${headers[i + 1]}`);
  return `${lines.join("\r\n")}\r\n\r\n${body}`;
}
