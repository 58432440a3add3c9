import { METHODS } from "node:http";
import { hashKey } from "../../core/keys/key-string.ts";
import { authorityOf } from "../../core/policies/check-path.ts";
import type { CompiledRule } from "../../core/policies/match-rule.ts";
import type { Code } from "../../core/verification/codes.ts";
import { retryAfterS } from "../../core/verification/conclude.ts";
import { networkOf } from "../../core/verification/ip-address.ts";
import { BEFORE_RULES } from "../../edge/pods/contract.ts";
import type { Verdict } from "../../edge/verification/verify.ts";
import { compileHeadReader, type Head } from "../http/head.ts";
import { headerIn } from "../http/header-in.ts";
import type { Admission } from "../http/in-flight.ts";
import { malformedProblem, type Problem, versionProblem } from "../http/responses.ts";
import type { ActivePolicy } from "../policy/active-policy.ts";
import {
  ambiguousHeaderProblem,
  deniedProblem,
  duplicateKeyProblem,
  missingKeyProblem,
  refusalProblem,
  tooManyAttemptsProblem,
  unavailableProblem,
} from "./problems.ts";
import type { Question } from "./verify.ts";

/*
 * Evaluates a request in two steps, both of which are pure functions: first by its head alone, then by the verdict on its key. `Exchange`
 * acts on their results.
 *
 *   head ──evaluateHead──► refuse
 *              ├─────────► pass
 *              ├─────────► count  ──checkVerdict──► refuse or pass
 *              └─────────► verify ──checkVerdict──► refuse or pass
 */

/** Outcome of a request: a verification code, or the reason why the gate verified no key. */
export type Decision =
  | Code
  | "ANONYMOUS"
  | "DENIED"
  | "MISSING_KEY"
  | "MALFORMED"
  | "TOO_MANY_ATTEMPTS"
  | "UNAVAILABLE";

/** Kind of a request: an ordinary request, a request that waits for `100 Continue`, or a protocol upgrade. */
export type RequestKind = "request" | "expectant" | "upgrade";

/** Part of a request that the gate evaluates; `IncomingMessage` implements this interface. */
export interface ReceivedRequest {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly httpVersion: string;
  readonly rawHeaders: readonly string[];
  readonly socket: { readonly remoteAddress?: string | undefined };
}

/** A request as it is forwarded to the app, with the data needed to check it again while its connection is open. */
export interface AdmittedRequest extends Admission {
  /** Request head for the app. The gate adds further headers to `forwarded` later. */
  readonly head: Head;
  /** Path and query without credentials, byte for byte as they were checked. */
  readonly target: string;
  /**
   * Address to which concurrency slots are attributed: the client's address as the policy defines it, or else the address of the
   * connection.
   */
  readonly address: string;
}

export interface Refuse {
  readonly kind: "refuse";
  readonly decision: Decision;
  readonly problem: Problem;
  /** Whether the connection must be closed, because it is uncertain where the request ends. */
  readonly closes: boolean;
  /** Index of the rule that rejected the request, as in `RuleCount`; `undefined` if the rejection does not depend on the policy. */
  readonly rule?: number;
}

export interface Pass {
  readonly kind: "pass";
  readonly decision: Decision;
  /** Whether Audit mode admitted a request that Enforce mode would have rejected. */
  readonly isAudited: boolean;
  /** Rule that would have rejected the request in Enforce mode; `undefined` if no rule would have. */
  readonly rule?: number;
}

export interface Verify extends AdmittedRequest, Question {
  readonly kind: "verify";
  readonly head: Head;
  readonly hash: string;
}

/** A request without a key, which is charged to the limits of its rule. */
export interface Count extends AdmittedRequest {
  readonly kind: "count";
  readonly active: ActivePolicy;
  readonly rule: CompiledRule;
}

export type HeadDecision = Refuse | (Pass & AdmittedRequest) | Count | Verify;

const readAnyHead = compileHeadReader([]);

/** Evaluates a request by its head. `active` is `undefined` if there is no policy yet. */
export function evaluateHead(
  request: ReceivedRequest,
  kind: RequestKind,
  active: ActivePolicy | undefined,
): HeadDecision {
  const { rawHeaders, httpVersion } = request;
  if (httpVersion !== "1.1" && httpVersion !== "2.0" && httpVersion !== "1.0") return refuseMalformed(versionProblem);
  if (!KNOWN_METHODS.has(request.method ?? "")) return refuseMalformed(METHOD_UNKNOWN);
  const head = (active?.readHead ?? readAnyHead)(rawHeaders, httpVersion);
  if (head.malformed !== undefined) return refuseMalformed(malformedProblem(head.malformed));
  if (namesTwoHosts(request)) return refuseMalformed(TWO_HOSTS);
  if (kind === "upgrade" && head.hasBody) return refuseMalformed(UPGRADE_WITH_BODY);
  if (active === undefined) return NO_POLICY;
  return evaluateByPolicy(request, head, active);
}

/**
 * Standard methods. Any other method, which an ext-auth endpoint may receive, is rejected, because many apps treat `delete` like `DELETE`
 * while rules distinguish them.
 */
const KNOWN_METHODS: ReadonlySet<string> = new Set(METHODS);
const METHOD_UNKNOWN = malformedProblem("The method of the request is unknown.", "method");
const UPGRADE_WITH_BODY = malformedProblem("A request for an upgrade has no body.");
const NO_POLICY: Refuse = {
  kind: "refuse",
  decision: "UNAVAILABLE",
  problem: unavailableProblem("The gate has not received its policy yet."),
  closes: false,
};

/**
 * Returns whether Host differs from the authority of a target in absolute form. Clients must send the same value in both (RFC 9112, 3.2),
 * and the authority takes precedence (RFC 9112, 3.2.2). But a proxy in front of the gate may have used Host, and the app receives only one
 * of the two values, so a difference is ambiguous.
 */
function namesTwoHosts({ url = "/", rawHeaders }: ReceivedRequest): boolean {
  if (url.startsWith("/")) return false;
  const authority = authorityOf(url)?.toLowerCase();
  const host = headerIn(rawHeaders, "host")?.toLowerCase();
  return authority !== undefined && host !== undefined && authority !== host;
}

const TWO_HOSTS = malformedProblem("The target of the request and its Host header name different hosts.");

const refuseMalformed = (problem: Problem): Refuse => ({
  kind: "refuse",
  decision: "MALFORMED",
  problem,
  closes: true,
});

function evaluateByPolicy(request: ReceivedRequest, head: Head, active: ActivePolicy): HeadDecision {
  const connectionIp = request.socket.remoteAddress ?? "";
  const clientIp = active.findClientAddress?.(connectionIp, head.forwardedFor);
  const address = networkOf(clientIp ?? connectionIp, active.policy.clientAddress?.ipv6PrefixBits);
  const method = request.method ?? "";
  const url = request.url ?? "";
  const { host, ruleHeaders: headers } = head;
  const matched = active.rules.match({ method, target: url, host, headers });
  if ("refused" in matched) return judgeRefusedTarget(active, matched.refused, url, { head, method, address });

  const { rule, path } = matched;
  const query = active.readQuery?.(matched.query);
  const target = path + (query?.query ?? matched.query);
  const by = { active, rule: rule.index };
  if (head.ambiguousHeader !== undefined || rule.access !== "Key") {
    const admitted = { head, method, path, target, address, hash: undefined, clientIp: undefined };
    if (head.ambiguousHeader !== undefined) {
      return refuseOrAudit(by, "MALFORMED", ambiguousHeaderProblem(head.ambiguousHeader), admitted);
    }
    if (rule.access === "Deny") return refuseOrAudit(by, "DENIED", deniedProblem, admitted);
    if (rule.ratelimits.length > 0) return { kind: "count", active, rule, ...admitted };
    return { kind: "pass", decision: "ANONYMOUS", isAudited: false, ...admitted };
  }

  const isInQuery = query !== undefined && query.credentialAt < head.credentialAt;
  const credential = isInQuery ? query.credential : head.credential;
  const isDuplicate = head.duplicateCredential || query?.duplicate === true;
  if (isDuplicate || credential === undefined) {
    const admitted = { head, method, path, target, address, hash: undefined, clientIp: undefined };
    if (isDuplicate) return refuseOrAudit(by, "MALFORMED", duplicateKeyProblem, admitted);
    return refuseOrAudit(by, "MISSING_KEY", missingKeyProblem, admitted);
  }
  const hash = hashKey(credential);
  return { kind: "verify", active, rule, hash, clientIp, head, method, path, target, address };
}

/** Handles a rejected target. Audit mode removes the credentials from its query and otherwise forwards it unchanged. */
function judgeRefusedTarget(
  active: ActivePolicy,
  reason: string,
  url: string,
  request: Pick<AdmittedRequest, "head" | "method" | "address">,
): HeadDecision {
  const problem = malformedProblem(`The request is refused because ${reason}.`, "path");
  // Audit mode rejects a request without a path, because the gate cannot forward it.
  const rule = BEFORE_RULES;
  if (!url.startsWith("/")) return { kind: "refuse", decision: "MALFORMED", problem, closes: false, rule };
  const question = url.indexOf("?");
  const query = question === -1 ? undefined : active.readQuery?.(url.slice(question));
  const target = query === undefined ? url : url.slice(0, question) + query.query;
  return refuseOrAudit({ active, rule }, "MALFORMED", problem, {
    ...request,
    path: url,
    target,
    hash: undefined,
    clientIp: undefined,
  });
}

/** Rejects the request, or in Audit mode admits it without identity headers. */
function refuseOrAudit(
  { active, rule }: { readonly active: ActivePolicy; readonly rule: number },
  decision: Decision,
  problem: Problem,
  admitted: AdmittedRequest,
): HeadDecision {
  if (active.policy.mode === "Audit") return { kind: "pass", decision, isAudited: true, rule, ...admitted };
  return { kind: "refuse", decision, problem, closes: false, rule };
}

/** Policy and rule for which a key was verified. */
type Judging = { readonly active: Pick<ActivePolicy, "policy">; readonly rule: Pick<CompiledRule, "index" | "access"> };

/** Evaluates a request by the verdict on its key or on its limits. */
export function checkVerdict(
  { active: { policy }, rule: { index, access } }: Judging,
  verdict: Verdict,
): Refuse | Pass {
  const code = verdict.kind === "decided" ? verdict.code : undefined;
  if (code === "VALID") return access === "Anonymous" ? PASS_ANONYMOUS : PASS_VALID;
  const decision = code ?? "UNAVAILABLE";
  if (policy.mode === "Audit") return { kind: "pass", decision, isAudited: true, rule: index };
  return { kind: "refuse", decision, problem: problemOf(verdict), closes: false, rule: index };
}

const UNCOUNTED = {
  limits: "Rate limits cannot be counted now.",
  credits: "The credits of the API key cannot be counted now.",
} as const;

/** Returns the response to a request without a valid key. */
function problemOf(verdict: Verdict): Problem {
  if (verdict.kind === "unknown") return unavailableProblem(verdict.reason);
  if (verdict.kind === "uncountable") return unavailableProblem(UNCOUNTED[verdict.what]);
  const { code, counted } = verdict;
  if (code === "VALID") throw new Error("a valid key is refused for nothing");
  return refusalProblem(code, counted?.consumed && retryAfterS(counted.code, counted.consumed));
}

/** Rejects a request from an address with too many failed attempts. */
export const refuseAttempt = ({ rule }: Verify, retryAfterS: number): Refuse => ({
  kind: "refuse",
  decision: "TOO_MANY_ATTEMPTS",
  problem: tooManyAttemptsProblem(retryAfterS),
  closes: false,
  rule: rule.index,
});

const PASS_VALID: Pass = { kind: "pass", decision: "VALID", isAudited: false };
const PASS_ANONYMOUS: Pass = { kind: "pass", decision: "ANONYMOUS", isAudited: false };
