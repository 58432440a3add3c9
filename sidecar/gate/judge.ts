import { METHODS } from "node:http";
import { hashKey } from "../../core/keys/key-string.ts";
import type { Code } from "../../core/verification/codes.ts";
import { retryAfterS } from "../../core/verification/conclude.ts";
import { networkOf } from "../../core/verification/ip-address.ts";
import { BEFORE_RULES } from "../../edge/pods/contract.ts";
import type { Verdict } from "../../edge/verification/verify.ts";
import { malformedProblem, type Problem, versionProblem } from "../http/answers.ts";
import { compileHeadReader, type Head } from "../http/head.ts";
import type { Admission } from "../http/ongoing.ts";
import type { PolicyInForce } from "../policy/in-force.ts";
import { duplicateKeyProblem, missingKeyProblem, refusalProblem, unavailableProblem } from "./problems.ts";
import type { Question } from "./verify.ts";

/*
 * What to do with a request, in two steps: by its head alone, and by the verdict on its key. Both are
 * pure functions. `Exchange` does what they say.
 *
 *   head ──judge──► refuse
 *              ├──► pass
 *              └──► verify ──judgeVerdict──► refuse or pass
 */

/** The outcome of a request: a verification code, or why there was none. */
export type Decision = Code | "ANONYMOUS" | "MISSING_KEY" | "MALFORMED" | "UNAVAILABLE";

/** The kind of a request: an ordinary one, one that waits for `100 Continue` before its body, or one to switch protocols. */
export type RequestKind = "request" | "expectant" | "upgrade";

/** The judged part of a request; an `IncomingMessage` has it. */
export interface ReceivedRequest {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly httpVersion: string;
  readonly rawHeaders: readonly string[];
  readonly socket: { readonly remoteAddress?: string | undefined };
}

/** A request as it is forwarded to the app. An open connection is checked again with it. */
export interface Onward extends Admission {
  /** More headers are added to its `forwarded` later. */
  readonly head: Head;
  /** Path and query in the bytes that were checked, without credentials. */
  readonly target: string;
  /** The address for which places are counted: the client's as the policy finds it, else the connection's. */
  readonly address: string;
}

export interface Refuse {
  readonly kind: "refuse";
  readonly decision: Decision;
  readonly problem: Problem;
  /** The end of the request is uncertain, so the connection is closed after it. */
  readonly closes: boolean;
  /** What refused it, as `RuleCount` has it; undefined for what no policy decides. */
  readonly rule?: number;
}

export interface Pass {
  readonly kind: "pass";
  readonly decision: Decision;
  /** Audit mode admits it; Enforce would have refused it. */
  readonly isAudited: boolean;
  /** What would have refused it; undefined when nothing would. */
  readonly rule?: number;
}

export interface Verify extends Onward, Question {
  readonly kind: "verify";
  readonly hash: string;
}

export type Judgment = Refuse | (Pass & Onward) | Verify;

const readAnyHead = compileHeadReader([]);

/** Judges a request by its head. `inForce` is undefined while there is no policy. */
export function judge(request: ReceivedRequest, kind: RequestKind, inForce: PolicyInForce | undefined): Judgment {
  const { rawHeaders, httpVersion } = request;
  if (httpVersion !== "1.1" && httpVersion !== "2.0" && httpVersion !== "1.0") return refuseMalformed(versionProblem);
  if (!KNOWN_METHODS.has(request.method ?? "")) return refuseMalformed(METHOD_UNKNOWN);
  const head = (inForce?.readHead ?? readAnyHead)(rawHeaders, httpVersion);
  if (head.malformed !== undefined) return refuseMalformed(malformedProblem(head.malformed));
  if (kind === "upgrade" && head.hasBody) return refuseMalformed(UPGRADE_WITH_BODY);
  if (inForce === undefined) return NO_POLICY;
  return judgeByPolicy(request, head, inForce);
}

/** Parsers refuse others, but doors are told of them: `delete` would be another method for a rule than for many an app. */
const KNOWN_METHODS: ReadonlySet<string> = new Set(METHODS);
const METHOD_UNKNOWN = malformedProblem("The method of the request is unknown.", "method");
const UPGRADE_WITH_BODY = malformedProblem("A request for an upgrade has no body.");
const NO_POLICY: Refuse = {
  kind: "refuse",
  decision: "UNAVAILABLE",
  problem: unavailableProblem("The gate has not received its policy yet."),
  closes: false,
};

const refuseMalformed = (problem: Problem): Refuse => ({
  kind: "refuse",
  decision: "MALFORMED",
  problem,
  closes: true,
});

function judgeByPolicy(request: ReceivedRequest, head: Head, inForce: PolicyInForce): Judgment {
  const connectionIp = request.socket.remoteAddress ?? "";
  const clientIp = inForce.findClientAddress?.(connectionIp, head.forwardedFor);
  const address = networkOf(clientIp ?? connectionIp);
  const method = request.method ?? "";
  const url = request.url ?? "";
  const matched = inForce.rules.match(method, url);
  if ("refused" in matched) return judgeRefusedTarget(inForce, matched.refused, url, { head, method, address });

  const { rule, path } = matched;
  const query = inForce.readQuery?.(matched.query);
  const target = path + (query?.query ?? matched.query);
  if (rule.access === "Anonymous") {
    return {
      kind: "pass",
      decision: "ANONYMOUS",
      isAudited: false,
      head,
      method,
      path,
      target,
      address,
      hash: undefined,
      clientIp: undefined,
    };
  }

  const isInQuery = query !== undefined && query.credentialAt < head.credentialAt;
  const credential = isInQuery ? query.credential : head.credential;
  const isDuplicate = head.duplicateCredential || query?.duplicate === true;
  if (isDuplicate || credential === undefined) {
    const onward = { head, method, path, target, address, hash: undefined, clientIp: undefined };
    const by = { inForce, rule: rule.index };
    if (isDuplicate) return refuseOrAudit(by, "MALFORMED", duplicateKeyProblem, onward);
    return refuseOrAudit(by, "MISSING_KEY", missingKeyProblem, onward);
  }
  const hash = hashKey(credential);
  return { kind: "verify", inForce, rule, hash, clientIp, head, method, path, target, address };
}

/** Audit mode forwards such a target unchanged, except for the credentials in its query. */
function judgeRefusedTarget(
  inForce: PolicyInForce,
  reason: string,
  url: string,
  request: Pick<Onward, "head" | "method" | "address">,
): Judgment {
  const problem = malformedProblem(`The request is refused because ${reason}.`, "path");
  // Without a path there is nothing that Audit mode could forward.
  const rule = BEFORE_RULES;
  if (!url.startsWith("/")) return { kind: "refuse", decision: "MALFORMED", problem, closes: false, rule };
  const question = url.indexOf("?");
  const query = question === -1 ? undefined : inForce.readQuery?.(url.slice(question));
  const target = query === undefined ? url : url.slice(0, question) + query.query;
  return refuseOrAudit({ inForce, rule }, "MALFORMED", problem, {
    ...request,
    path: url,
    target,
    hash: undefined,
    clientIp: undefined,
  });
}

/** Audit mode admits what Enforce refuses, without identity headers. */
function refuseOrAudit(
  { inForce, rule }: { readonly inForce: PolicyInForce; readonly rule: number },
  decision: Decision,
  problem: Problem,
  onward: Onward,
): Judgment {
  if (inForce.policy.mode === "Audit") return { kind: "pass", decision, isAudited: true, rule, ...onward };
  return { kind: "refuse", decision, problem, closes: false, rule };
}

/** The policy and rule that a key was verified for. */
type Judging = { readonly inForce: Pick<PolicyInForce, "policy">; readonly rule: Pick<Question["rule"], "index"> };

/** Judges a request by the verdict on its key. */
export function judgeVerdict({ inForce: { policy }, rule: { index: rule } }: Judging, verdict: Verdict): Refuse | Pass {
  const code = verdict.kind === "decided" ? verdict.code : undefined;
  if (code === "VALID") return PASS_VALID;
  const decision = code ?? "UNAVAILABLE";
  if (policy.mode === "Audit") return { kind: "pass", decision, isAudited: true, rule };
  return { kind: "refuse", decision, problem: problemOf(verdict), closes: false, rule };
}

const UNCOUNTED = {
  limits: "Rate limits cannot be counted now.",
  credits: "The credits of the API key cannot be counted now.",
} as const;

/** Returns the response to a request whose key is not valid. */
function problemOf(verdict: Verdict): Problem {
  if (verdict.kind === "unknown") return unavailableProblem(verdict.reason);
  if (verdict.kind === "uncountable") return unavailableProblem(UNCOUNTED[verdict.what]);
  const { code, counted } = verdict;
  if (code === "VALID") throw new Error("a valid key is refused for nothing");
  return refusalProblem(code, counted?.consumed && retryAfterS(counted.code, counted.consumed));
}

const PASS_VALID: Pass = { kind: "pass", decision: "VALID", isAudited: false };
