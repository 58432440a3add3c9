import { identityHeaders } from "../../core/policies/identity-headers.ts";
import { type ShownLimit, showTightest } from "../../core/ratelimits/limit-headers.ts";
import type { KeyView } from "../../core/verification/key-view.ts";
import { type RecordingDeps, recordVerification } from "../../edge/verification/record.ts";
import type { Verdict } from "../../edge/verification/verify.ts";
import type { ActivePolicy } from "../policy/active-policy.ts";
import {
  type AdmittedRequest,
  type Count,
  checkVerdict,
  type Decision,
  evaluateHead,
  type Pass,
  type ReceivedRequest,
  type Refuse,
  type RequestKind,
  refuseAttempt,
  type Verify,
} from "./evaluate-head.ts";
import type { FailedAttempts } from "./failed-attempts.ts";
import { internalProblem } from "./problems.ts";
import { count, type VerifyDeps, verify } from "./verify.ts";

/*
 * Decides one request, in the same way for the proxy and for every ext-auth endpoint: evaluates its head, verifies its key if one is
 * required, and records the outcome (event, metrics, counts of rejections). The caller turns the decision into a response or a request to
 * the app.
 */

export interface DecisionDeps {
  readonly policy: () => ActivePolicy | undefined;
  readonly verifying: VerifyDeps;
  readonly recording: RecordingDeps;
  readonly attempts: Pick<FailedAttempts, "check" | "record">;
  /** Returns an id suffix that is unique across processes. */
  readonly nextId: () => string;
  readonly metrics: DecisionMetrics;
  readonly refusals: RefusalSink;
  /** Counts and logs an unexpected error. Must never throw. */
  readonly onInternalError: (error: unknown, requestId?: string) => void;
}

export interface DecisionMetrics {
  observe(decision: Decision, tookMs: number): void;
  auditedRefusals: number;
}

/** Counts rejections per rule, including those that Audit mode only records. */
export interface RefusalSink {
  note(active: ActivePolicy, rule: number, decision: Decision): void;
}

export interface Refused {
  readonly kind: "refuse";
  readonly requestId: string;
  /** Limit that the `RateLimit-*` response headers show. */
  readonly shown: ShownLimit | undefined;
  readonly refusal: Refuse;
}

export interface Passed {
  readonly kind: "pass";
  readonly requestId: string;
  readonly shown: ShownLimit | undefined;
  readonly admitted: AdmittedRequest;
  /** Identity headers, as alternating names and values; empty for a request without a valid key. */
  readonly identity: readonly string[];
}

export type Decided = Refused | Passed;

/**
 * Decides a request and records the decision. Returns synchronously if no I/O is necessary. Never throws and never returns a rejected
 * promise: an internal error is reported, and the request is rejected. `startedMs` is a value of `performance.now()`.
 */
export function decide(
  deps: DecisionDeps,
  request: ReceivedRequest,
  kind: RequestKind,
  startedMs: number,
): Decided | Promise<Decided> {
  return new Deciding(deps, startedMs).decide(request, kind);
}

class Deciding {
  readonly #parts: DecisionDeps;
  readonly #startedMs: number;
  readonly #idEnding: string;
  readonly #requestId: string;
  /** Time of the decision, as `performance.now()`; 0 before the decision. */
  #decidedMs = 0;
  #shown: ShownLimit | undefined;
  #identity: readonly string[] = NOTHING;
  /** Policy under which the request was evaluated. */
  #active: ActivePolicy | undefined;

  constructor(deps: DecisionDeps, startedMs: number) {
    this.#parts = deps;
    this.#startedMs = startedMs;
    this.#idEnding = deps.nextId();
    this.#requestId = `req_${this.#idEnding}`;
  }

  decide(request: ReceivedRequest, kind: RequestKind): Decided | Promise<Decided> {
    try {
      this.#active = this.#parts.policy();
      const decision = evaluateHead(request, kind, this.#active);
      if (decision.kind === "verify") return this.#admit(decision);
      if (decision.kind === "count") return this.#verify(decision);
      return decision.kind === "pass" ? this.#pass(decision, decision) : this.#refuse(decision);
    } catch (error) {
      return this.#fail(error);
    }
  }

  /** Checks the failed attempts of the address before the key is looked up. */
  #admit(verification: Verify): Decided | Promise<Decided> {
    const retryAfterS = this.#parts.attempts.check(verification);
    if (retryAfterS === undefined) return this.#verify(verification);
    if (typeof retryAfterS === "number") return this.#tooManyAttempts(verification, retryAfterS);
    return retryAfterS
      .then((late) => (late === undefined ? this.#verify(verification) : this.#tooManyAttempts(verification, late)))
      .catch((error: unknown) => this.#fail(error));
  }

  /** In Audit mode, the rejection is only recorded, and the key is still verified. */
  #tooManyAttempts(verification: Verify, retryAfterS: number): Decided | Promise<Decided> {
    const refusal = refuseAttempt(verification, retryAfterS);
    if (verification.active.policy.mode !== "Audit") return this.#refuse(refusal);
    this.#parts.metrics.auditedRefusals += 1;
    this.#parts.refusals.note(verification.active, verification.rule.index, refusal.decision);
    return this.#verify(verification);
  }

  #verify(verification: Verify | Count): Decided | Promise<Decided> {
    const { verifying } = this.#parts;
    const verdict = verification.kind === "verify" ? verify(verifying, verification) : count(verifying, verification);
    return verdict instanceof Promise
      ? verdict.then((late) => this.#settle(verification, late)).catch((error: unknown) => this.#fail(error))
      : this.#settle(verification, verdict);
  }

  #settle(verification: Verify | Count, verdict: Verdict): Decided {
    if (verdict.kind === "decided") {
      const { counted } = verdict;
      if (counted?.consumed !== undefined) {
        this.#shown = showTightest(counted.limits, counted.consumed, verification.rule.name);
      }
      if (verdict.view !== undefined) this.#record(verdict, verdict.view);
      if (verification.kind === "verify") this.#parts.attempts.record(verification, verdict.code);
    }
    const decision = checkVerdict(verification, verdict);
    return decision.kind === "pass" ? this.#pass(decision, verification) : this.#refuse(decision);
  }

  /** Records one event for each decision about a key that exists. */
  #record({ code, counted }: Verdict & { kind: "decided" }, view: KeyView): void {
    const { recording, verifying } = this.#parts;
    recordVerification(recording, view, {
      id: `ev_${this.#idEnding}`,
      requestId: this.#requestId,
      timeMs: verifying.nowMs(),
      outcome: code,
      tags: NOTHING,
      spentCredits: counted?.spentCredits ?? 0,
      latencyMs: Math.round(this.#tookMs()),
    });
    if (code === "VALID") this.#identity = identityHeaders(view);
  }

  #pass({ decision, isAudited, rule }: Pass, admitted: AdmittedRequest): Passed {
    this.#observe(decision, rule);
    if (isAudited) this.#parts.metrics.auditedRefusals += 1;
    return { kind: "pass", requestId: this.#requestId, shown: this.#shown, admitted, identity: this.#identity };
  }

  #refuse(refusal: Refuse): Refused {
    this.#observe(refusal.decision, refusal.rule);
    return { kind: "refuse", requestId: this.#requestId, shown: this.#shown, refusal };
  }

  #fail(error: unknown): Refused {
    this.#parts.onInternalError(error, this.#requestId);
    return this.#refuse(FAILED);
  }

  /** Records metrics. `rule` is the index of the rule that rejected the request, or would have rejected it in Enforce mode. */
  #observe(decision: Decision, rule: number | undefined): void {
    this.#parts.metrics.observe(decision, this.#tookMs());
    if (rule !== undefined && this.#active !== undefined) this.#parts.refusals.note(this.#active, rule, decision);
  }

  /** Returns the duration of the decision. Reads the clock only once, so that the event and the metrics have the same value. */
  #tookMs(): number {
    if (this.#decidedMs === 0) this.#decidedMs = performance.now();
    return this.#decidedMs - this.#startedMs;
  }
}

const NOTHING: readonly string[] = [];

/** Decision for a request that failed with an internal error. */
export const FAILED: Refuse = { kind: "refuse", decision: "UNAVAILABLE", problem: internalProblem, closes: false };
