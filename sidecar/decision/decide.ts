import { identityHeaders } from "../../core/policies/identity-headers.ts";
import { type ShownLimit, showTightest } from "../../core/ratelimits/limit-headers.ts";
import type { KeyView } from "../../core/verification/key-view.ts";
import { type RecordingDeps, recordVerification } from "../../edge/verification/record.ts";
import type { Verdict } from "../../edge/verification/verify.ts";
import type { ActivePolicy } from "../policy/active-policy.ts";
import {
  type AdmittedRequest,
  checkVerdict,
  type Decision,
  evaluateHead,
  type Pass,
  type ReceivedRequest,
  type Refuse,
  type RequestKind,
  type Verify,
} from "./evaluate-head.ts";
import { internalProblem } from "./problems.ts";
import { type VerifyDeps, verify } from "./verify.ts";

/*
 * Decides one request, the same way for the proxy and for every ext-auth endpoint: evaluates its head, verifies its key if one is required,
 * and records the outcome (event, metrics, counts of rejections). The caller acts on the decision (the app, an HTTP status, a gRPC
 * response).
 */

export interface DecisionDeps {
  readonly policy: () => ActivePolicy | undefined;
  readonly verifying: VerifyDeps;
  readonly recording: RecordingDeps;
  /** Returns the suffixes of ids, unique across processes. */
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
  /** Limit that the `RateLimit-*` headers show. */
  readonly shown: ShownLimit | undefined;
  readonly refusal: Refuse;
}

export interface Passed {
  readonly kind: "pass";
  readonly requestId: string;
  readonly shown: ShownLimit | undefined;
  readonly admitted: AdmittedRequest;
  /** Alternating names and values; empty for a request without a valid key. */
  readonly identity: readonly string[];
}

export type Decided = Refused | Passed;

/**
 * Decides a request and records the decision. Returns synchronously when it need not wait. Never throws or rejects: an internal error is
 * reported and rejects the request. `startedMs` is of `performance.now()`.
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
  /** `performance.now()` when the decision was made; 0 before. */
  #decidedMs = 0;
  #shown: ShownLimit | undefined;
  #identity: readonly string[] = NOTHING;
  /** Policy by which the request was evaluated. */
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
      if (decision.kind === "verify") return this.#verify(decision);
      return decision.kind === "pass" ? this.#pass(decision, decision) : this.#refuse(decision);
    } catch (error) {
      return this.#fail(error);
    }
  }

  #verify(verification: Verify): Decided | Promise<Decided> {
    const verdict = verify(this.#parts.verifying, verification);
    return verdict instanceof Promise
      ? verdict.then((late) => this.#settle(verification, late)).catch((error: unknown) => this.#fail(error))
      : this.#settle(verification, verdict);
  }

  #settle(verification: Verify, verdict: Verdict): Decided {
    if (verdict.kind === "decided") {
      const { counted } = verdict;
      if (counted?.consumed !== undefined) this.#shown = showTightest(counted.limits, counted.consumed);
      if (verdict.view !== undefined) this.#record(verdict, verdict.view);
    }
    const decision = checkVerdict(verification, verdict);
    return decision.kind === "pass" ? this.#pass(decision, verification) : this.#refuse(decision);
  }

  /** Reports one event for each decision about a known key. */
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

  /** `rule`: the rule that rejected the request, or would have. */
  #observe(decision: Decision, rule: number | undefined): void {
    this.#parts.metrics.observe(decision, this.#tookMs());
    if (rule !== undefined && this.#active !== undefined) this.#parts.refusals.note(this.#active, rule, decision);
  }

  /** Returns how long the decision took. The clock is read once, so that event and metrics have the same value. */
  #tookMs(): number {
    if (this.#decidedMs === 0) this.#decidedMs = performance.now();
    return this.#decidedMs - this.#startedMs;
  }
}

const NOTHING: readonly string[] = [];

/** The result when the gate failed to handle the request. */
export const FAILED: Refuse = { kind: "refuse", decision: "UNAVAILABLE", problem: internalProblem, closes: false };
