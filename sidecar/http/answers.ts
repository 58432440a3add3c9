import type { ServerResponse } from "node:http";
import { ERROR_KINDS, type ErrorKind } from "../../core/errors.ts";
import type { Code } from "../../core/verification/codes.ts";

/*
 * What the gate says itself: error bodies as the v2 API gives them (api-v2.md section 4.1), and the headers about limits.
 */

export interface Problem {
  readonly kind: ErrorKind;
  /** For a person; never a secret. */
  readonly detail: string;
  /** Where the fault is, for the kinds with status 400 and 408. */
  readonly location?: string;
  readonly authenticate?: string;
  /** Whole seconds, at least 1. */
  readonly retryAfterS?: number | undefined;
}

/** The tightest limit that was checked, as the `RateLimit-*` headers show it. */
export interface ShownLimit {
  readonly limit: number;
  readonly remaining: number;
  /** Whole seconds to the end of the window. */
  readonly resetS: number;
}

const NO_KEY: Problem = {
  kind: "unauthorized",
  detail: "The request carries no API key in any of the places where one is looked for.",
  // RFC 6750, 3.1: a request without any credential gets no error code.
  authenticate: 'Bearer realm="postern"',
};
const INVALID_TOKEN = 'Bearer realm="postern", error="invalid_token"';

const BY_CODE: Readonly<Record<Exclude<Code, "VALID">, Problem>> = {
  NOT_FOUND: { kind: "unauthorized", detail: "The API key is not known here.", authenticate: INVALID_TOKEN },
  DISABLED: { kind: "unauthorized", detail: "The API key is disabled.", authenticate: INVALID_TOKEN },
  EXPIRED: { kind: "unauthorized", detail: "The API key has expired.", authenticate: INVALID_TOKEN },
  FORBIDDEN: {
    kind: "forbidden",
    detail: "The API key may not be used: its workspace is disabled, or the client's address is not on the API's list.",
  },
  INSUFFICIENT_PERMISSIONS: {
    kind: "forbidden",
    detail: "The API key lacks a permission that this request needs.",
  },
  RATE_LIMITED: { kind: "rate_limited", detail: "A rate limit is used up." },
  USAGE_EXCEEDED: { kind: "usage_exceeded", detail: "The API key has not enough credits left for this request." },
};

export const missingKeyProblem: Problem = NO_KEY;
export const duplicateKeyProblem: Problem = {
  kind: "malformed_request",
  detail: "The API key was sent twice in the same place.",
  location: "header",
};
export const internalProblem: Problem = { kind: "unexpected_error", detail: "The gate failed to handle the request." };

/** `NOT_FOUND`, `DISABLED`, `EXPIRED`: 401. `FORBIDDEN`, `INSUFFICIENT_PERMISSIONS`: 403. The other two: 429. */
export function refusalProblem(code: Exclude<Code, "VALID">, retryAfterS: number | undefined): Problem {
  const problem = BY_CODE[code];
  return retryAfterS === undefined ? problem : { ...problem, retryAfterS };
}

/** Not decidable now: 503, to be tried again in a second. */
export const unavailableProblem = (detail: string): Problem => ({
  kind: "verification_unavailable",
  detail,
  retryAfterS: 1,
});

/** The problem as a whole answer, without what only the connection decides. */
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

export function pushLimitHeaders(headers: string[], shown: ShownLimit): void {
  headers.push(
    "RateLimit-Limit",
    String(shown.limit),
    "RateLimit-Remaining",
    String(shown.remaining),
    "RateLimit-Reset",
    String(shown.resetS),
  );
}

/** Sends a problem as the whole answer to a request. `close` ends the connection after it. */
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
