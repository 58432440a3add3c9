import { sayAmbiguousHeader } from "../../core/policies/rule-headers.ts";
import type { Code } from "../../core/verification/codes.ts";
import type { Problem } from "../http/responses.ts";

/* Problems that the gate sends to clients of rejected requests. */

export const missingKeyProblem: Problem = {
  kind: "unauthorized",
  detail: "The request contains no API key in any of the configured locations.",
  // A request without any credential gets no error code (RFC 6750, section 3.1).
  authenticate: 'Bearer realm="postern"',
};
const INVALID_TOKEN = 'Bearer realm="postern", error="invalid_token"';

const BY_CODE: Readonly<Record<Exclude<Code, "VALID">, Problem>> = {
  NOT_FOUND: { kind: "unauthorized", detail: "The API key does not exist.", authenticate: INVALID_TOKEN },
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
  RATE_LIMITED: { kind: "rate_limited", detail: "A rate limit is exceeded." },
  USAGE_EXCEEDED: { kind: "usage_exceeded", detail: "The API key has too few remaining credits for this request." },
};

export const duplicateKeyProblem: Problem = {
  kind: "malformed_request",
  detail: "The request contains two API keys in the same location.",
  location: "header",
};
export const deniedProblem: Problem = { kind: "forbidden", detail: "The policy denies this request." };
export const ambiguousHeaderProblem = (name: string): Problem => ({
  kind: "malformed_request",
  detail: sayAmbiguousHeader(name),
  location: "header",
});
export const internalProblem: Problem = { kind: "unexpected_error", detail: "The gate failed to handle the request." };

/**
 * Returns the problem for a rejected key. The status is 401 for `NOT_FOUND`, `DISABLED` and `EXPIRED`, 403 for `FORBIDDEN` and
 * `INSUFFICIENT_PERMISSIONS`, and 429 for the two remaining codes.
 */
export function refusalProblem(code: Exclude<Code, "VALID">, retryAfterS: number | undefined): Problem {
  const problem = BY_CODE[code];
  return retryAfterS === undefined ? problem : { ...problem, retryAfterS };
}

export const tooManyAttemptsProblem = (retryAfterS: number): Problem => ({
  kind: "rate_limited",
  detail: "Too many requests from this address failed because of their API keys.",
  retryAfterS,
});

/** Returns the problem for a request that cannot be decided now: 503 with `Retry-After: 1`. */
export const unavailableProblem = (detail: string): Problem => ({
  kind: "verification_unavailable",
  detail,
  retryAfterS: 1,
});
