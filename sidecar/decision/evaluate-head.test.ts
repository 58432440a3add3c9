import { describe, expect, test } from "vitest";
import { hashKey } from "../../core/keys/key-string.ts";
import { type CompiledPolicy, PolicyInput } from "../../core/policies/policy.ts";
import type { Code } from "../../core/verification/codes.ts";
import type { Counted } from "../../edge/verification/count.ts";
import type { Verdict } from "../../edge/verification/verify.ts";
import { type ActivePolicy, readPolicy } from "../policy/active-policy.ts";
import {
  checkVerdict,
  evaluateHead,
  type HeadDecision,
  type ReceivedRequest,
  type RequestKind,
} from "./evaluate-head.ts";

const anyRule = { access: "Key" as const, creditCost: 1, ratelimits: [] };

function active(changes: Partial<CompiledPolicy> = {}): ActivePolicy {
  const policy = PolicyInput.parse({
    formatVersion: 1,
    apiId: "api_orders",
    mode: "Enforce",
    credentials: [
      { in: "header", name: "Authorization", scheme: "Bearer" },
      { in: "query", name: "key" },
      { in: "header", name: "X-API-Key" },
    ],
    rules: [{ ...anyRule, path: { prefix: "/healthz" }, access: "Anonymous" }],
    onStale: { afterMs: 30_000, action: "Serve", denyAfterMs: 900_000 },
    onCounterFailure: "Local",
    onCreditFailure: "Deny",
    allowPaths: [],
    ...changes,
  });
  const record = {
    policyId: "pol_1",
    name: "orders",
    apiId: "api_orders",
    uid: "u",
    generation: 1,
    version: 7,
    policy,
  };
  const read = readPolicy(record);
  if ("problem" in read) throw new Error(read.problem);
  return read;
}

const ENFORCED = active();
const HEADERS_ONLY = active({ mode: "Audit", credentials: [{ in: "header", name: "X-API-Key" }] });
const AUDITED = active({ mode: "Audit" });

interface Case {
  readonly url?: string;
  readonly method?: string;
  readonly headers?: readonly string[];
  readonly httpVersion?: string;
  readonly kind?: RequestKind;
  readonly policy?: ActivePolicy | undefined;
  readonly remoteAddress?: string;
}

function judged({ url = "/orders", method = "GET", headers = [], kind = "request", ...rest }: Case): HeadDecision {
  const { httpVersion = "1.1", remoteAddress = "192.0.2.9" } = rest;
  const rawHeaders = ["Host", "app.test", ...headers];
  const request: ReceivedRequest = { method, url, httpVersion, rawHeaders, socket: { remoteAddress } };
  return evaluateHead(request, kind, "policy" in rest ? rest.policy : ENFORCED);
}

/** Returns what the app would get, and the key to verify. */
function essence(judgment: HeadDecision): Record<string, unknown> {
  if (judgment.kind === "refuse") {
    const { kind, decision, closes, problem } = judgment;
    return { kind, decision, closes, problem: problem.kind };
  }
  const { kind, method, path, target, address, hash, clientIp } = judgment;
  const admitted = { kind, method, path, target, address, hash, clientIp, headers: judgment.head.forwarded };
  return judgment.kind === "pass"
    ? { ...admitted, decision: judgment.decision, isAudited: judgment.isAudited }
    : { ...admitted, rule: judgment.rule.index };
}

const BEARER = ["Authorization", "Bearer secret_1"];
const CHUNKED = ["Transfer-Encoding", "chunked"];
const admitted = {
  method: "GET",
  path: "/orders",
  target: "/orders",
  address: "192.0.2.9",
  hash: undefined,
  clientIp: undefined,
  headers: ["host", "app.test"],
};
const closing = { kind: "refuse", decision: "MALFORMED", closes: true, problem: "malformed_request" };
const malformed = { ...closing, closes: false };
const audited = { ...admitted, kind: "pass", isAudited: true };

describe("requests decided without the policy", () => {
  test.each<{ name: string; request: Case; expected: object }>([
    {
      name: "another version is refused, whatever else is wrong",
      request: { httpVersion: "3.0", headers: ["Host", "two.test"] },
      expected: { ...closing, problem: "http_version_not_supported" },
    },
    { name: "a head that can be read in two ways", request: { headers: ["Host", "two.test"] }, expected: closing },
    { name: "and in Audit mode", request: { headers: ["Host", "two.test"], policy: AUDITED }, expected: closing },
    { name: "and without a policy", request: { headers: ["Host", "two.test"], policy: undefined }, expected: closing },
    { name: "an upgrade with a body", request: { kind: "upgrade", headers: CHUNKED }, expected: closing },
    {
      name: "and in Audit mode",
      request: { kind: "upgrade", headers: [...BEARER, "Content-Length", "1"], policy: AUDITED },
      expected: closing,
    },
    {
      name: "everything else while there is none, and not for good",
      request: { headers: BEARER, policy: undefined },
      expected: { kind: "refuse", decision: "UNAVAILABLE", closes: false, problem: "verification_unavailable" },
    },
  ])("evaluateHead decides a request without a policy: $name", ({ request, expected }) =>
    expect(essence(judged(request))).toEqual(expected),
  );
});

describe("request targets that are not forwarded", () => {
  test.each<{ name: string; request: Case; expected: object }>([
    { name: "is refused", request: { url: "/a/../b", headers: BEARER }, expected: malformed },
    {
      name: "is passed on as it came in Audit mode, without the credentials of its query, and asks for no key",
      request: { url: "/a/../b?x=1&key=secret_2", headers: BEARER, policy: AUDITED },
      expected: {
        ...audited,
        decision: "MALFORMED",
        path: "/a/../b?x=1&key=secret_2",
        target: "/a/../b?x=1",
      },
    },
    {
      name: "is passed on whole in Audit mode when it has no query",
      request: { url: "/a/../b", policy: AUDITED },
      expected: { ...audited, decision: "MALFORMED", path: "/a/../b", target: "/a/../b" },
    },
    {
      name: "is passed on whole in Audit mode when no key is looked for in queries",
      request: { url: "/a/../b?key=x", policy: HEADERS_ONLY },
      expected: { ...audited, decision: "MALFORMED", path: "/a/../b?key=x", target: "/a/../b?key=x" },
    },
    {
      name: "is refused in Audit mode too when it has no path",
      request: { url: "*", method: "OPTIONS", policy: AUDITED },
      expected: malformed,
    },
  ])("evaluateHead rejects an unsafe request target: $name", ({ request, expected }) =>
    expect(essence(judged(request))).toEqual(expected),
  );
});

test("evaluateHead names the path as the cause when the request target is invalid", () => {
  const decision = judged({ url: "/a/../b" });
  expect(decision.kind === "refuse" && decision.problem).toMatchObject({
    detail: "The request is refused because the path has a dot segment.",
    location: "path",
  });
});

describe("policy rules", () => {
  test("an Anonymous rule admits a request without a key and removes credentials", () => {
    const headers = [...BEARER, "X-Postern-Key-Id", "forged", "Accept", "*/*"];
    expect(essence(judged({ url: "/healthz?a=1&key=k", headers }))).toEqual({
      ...admitted,
      kind: "pass",
      decision: "ANONYMOUS",
      isAudited: false,
      path: "/healthz",
      target: "/healthz?a=1",
      headers: ["host", "app.test", "Accept", "*/*"],
    });
  });

  test.each<{ name: string; request: Case; expected: object }>([
    {
      name: "without a key",
      request: {},
      expected: { kind: "refuse", decision: "MISSING_KEY", closes: false, problem: "unauthorized" },
    },
    {
      name: "without a key, in Audit mode",
      request: { policy: AUDITED },
      expected: { ...audited, decision: "MISSING_KEY" },
    },
    { name: "with two keys in one header", request: { headers: [...BEARER, ...BEARER] }, expected: malformed },
    { name: "with two keys in the query", request: { url: "/orders?key=a&key=b" }, expected: malformed },
    {
      name: "with two keys in one header, in Audit mode",
      request: { headers: [...BEARER, ...BEARER], policy: AUDITED },
      expected: { ...audited, decision: "MALFORMED" },
    },
  ])("evaluateHead applies the matching rule: $name", ({ request, expected }) =>
    expect(essence(judged(request))).toEqual(expected),
  );

  const verifying = { ...admitted, kind: "verify", rule: -1 };
  test.each<{ name: string; request: Case; key: string; expected?: object }>([
    { name: "a key is verified", request: { headers: BEARER }, key: "secret_1" },
    { name: "and in Audit mode", request: { headers: BEARER, policy: AUDITED }, key: "secret_1" },
    {
      name: "the first place that has one in the policy's order counts: a header before the query",
      request: { url: "/orders?key=secret_2", headers: BEARER },
      key: "secret_1",
    },
    {
      name: "the query before a later header",
      request: { url: "/orders?key=secret_2", headers: ["X-API-Key", "secret_3"] },
      key: "secret_2",
    },
    {
      name: "the policy's way to the client's address is followed",
      request: {
        headers: [...BEARER, "X-Forwarded-For", "2001:db8::1"],
        policy: active({ clientAddress: { from: "forwardedFor", trustedProxies: ["192.0.2.0/24"] } }),
      },
      key: "secret_1",
      expected: {
        clientIp: "2001:db8::1",
        address: "2001:db8:0:0::/64",
        headers: ["host", "app.test", "X-Forwarded-For", "2001:db8::1"],
      },
    },
    { name: "an expectation changes nothing", request: { headers: BEARER, kind: "expectant" }, key: "secret_1" },
    { name: "nor does an upgrade", request: { headers: BEARER, kind: "upgrade" }, key: "secret_1" },
    {
      name: "a body is no matter",
      request: { headers: [...BEARER, "Content-Length", "1"] },
      key: "secret_1",
      expected: { headers: [...admitted.headers, "content-length", "1"] },
    },
    { name: "nor is HTTP/1.0", request: { headers: BEARER, httpVersion: "1.0" }, key: "secret_1" },
    {
      name: "a query is passed on whole when no key is looked for in it",
      request: { url: "/orders?key=x", headers: ["X-API-Key", "secret_3"], policy: HEADERS_ONLY },
      key: "secret_3",
      expected: { target: "/orders?key=x" },
    },
    {
      name: "a path is what it is spelt as once",
      request: { url: "/%6Frders?a=%6F", headers: BEARER },
      key: "secret_1",
      expected: { target: "/orders?a=%6F" },
    },
  ])("evaluateHead extracts the credentials of a request: $name", ({ request, key, expected }) =>
    expect(essence(judged(request))).toEqual({ ...verifying, hash: hashKey(key), ...expected }),
  );

  test("key verification keeps the policy under which it was requested", () => {
    const decision = judged({ headers: BEARER });
    expect(decision.kind === "verify" && decision.active).toBe(ENFORCED);
  });
});

describe("verification codes", () => {
  const nowMs = 1_800_000_000_000;
  const refused = { passed: false, remaining: 0, resetMs: nowMs + 60_000, retryAtMs: nowMs + 6_001 };
  const decided = (code: Code, counted?: Counted): Verdict => ({ kind: "decided", code, view: undefined, counted });
  const RATE_LIMITED = decided("RATE_LIMITED", {
    kind: "counted",
    code: "RATE_LIMITED",
    limits: [],
    consumed: { nowMs, passed: false, limits: [refused] },
    spentCredits: 0,
  });
  const VALID = decided("VALID");
  const UNKNOWN: Verdict = { kind: "unknown", reason: "Why." };
  const uncountable = (what: "limits" | "credits"): Verdict => ({ kind: "uncountable", what, cause: undefined });

  test.each([
    {
      name: "VALID passes",
      policy: ENFORCED,
      verdict: VALID,
      expected: { kind: "pass", decision: "VALID", isAudited: false },
    },
    {
      name: "VALID is not audited",
      policy: AUDITED,
      verdict: VALID,
      expected: { kind: "pass", decision: "VALID", isAudited: false },
    },
    {
      name: "any other is refused with its code and its time, and the connection goes on",
      policy: ENFORCED,
      verdict: RATE_LIMITED,
      expected: {
        kind: "refuse",
        decision: "RATE_LIMITED",
        closes: false,
        problem: { kind: "rate_limited", retryAfterS: 7 },
      },
    },
    {
      name: "nothing was counted for it: it may not be tried again",
      policy: ENFORCED,
      verdict: decided("DISABLED"),
      expected: { decision: "DISABLED", problem: { kind: "unauthorized", detail: "The API key is disabled." } },
    },
    {
      name: "any other passes in Audit mode",
      policy: AUDITED,
      verdict: decided("NOT_FOUND"),
      expected: { kind: "pass", decision: "NOT_FOUND", isAudited: true },
    },
    {
      name: "none is a 503",
      policy: ENFORCED,
      verdict: UNKNOWN,
      expected: {
        kind: "refuse",
        decision: "UNAVAILABLE",
        closes: false,
        problem: { kind: "verification_unavailable", detail: "Why." },
      },
    },
    {
      name: "limits that cannot be counted are a 503",
      policy: ENFORCED,
      verdict: uncountable("limits"),
      expected: { decision: "UNAVAILABLE", problem: { detail: "Rate limits cannot be counted now." } },
    },
    {
      name: "so are credits",
      policy: ENFORCED,
      verdict: uncountable("credits"),
      expected: { decision: "UNAVAILABLE", problem: { detail: "The credits of the API key cannot be counted now." } },
    },
    {
      name: "none passes in Audit mode",
      policy: AUDITED,
      verdict: UNKNOWN,
      expected: { kind: "pass", decision: "UNAVAILABLE", isAudited: true },
    },
  ])("checkVerdict maps a verification result to a decision: $name", ({ policy: active, verdict: given, expected }) =>
    expect(checkVerdict({ active, rule: { index: 4, access: "Key" } }, given)).toMatchObject(expected),
  );

  test("decision names the policy rule only if the request is denied, or would be denied without Audit mode", () => {
    const of = (active: ActivePolicy, given: Verdict) =>
      checkVerdict({ active, rule: { index: 4, access: "Key" } }, given).rule;
    expect([of(ENFORCED, UNKNOWN), of(AUDITED, UNKNOWN)]).toEqual([4, 4]);
    expect(of(ENFORCED, decided("VALID"))).toBeUndefined();
  });
});
