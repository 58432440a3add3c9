import { identityHeaders } from "../../core/policies/identity-headers.ts";
import { type ShownLimit, showTightest } from "../../core/ratelimits/limit-headers.ts";
import type { KeyView } from "../../core/verification/key-view.ts";
import { type RecordingParts, recordVerification } from "../../edge/verification/record.ts";
import type { Verdict } from "../../edge/verification/verify.ts";
import type { PolicyInForce } from "../policy/in-force.ts";
import {
  type Decision,
  judge,
  judgeVerdict,
  type Onward,
  type Pass,
  type ReceivedRequest,
  type Refuse,
  type RequestKind,
  type Verify,
} from "./judge.ts";
import { internalProblem } from "./problems.ts";
import { type VerifyParts, verify } from "./verify.ts";

/*
 * The decision on one request, the same for the proxy and for every door: its head is judged, its key is verified if it needs one,
 * and what came of it is recorded (event, metrics, counts of refusals). What follows from it (the app, an HTTP status, an answer of
 * gRPC) is the caller's.
 */

export interface DecisionParts {
  readonly policy: () => PolicyInForce | undefined;
  readonly verifying: VerifyParts;
  readonly recording: RecordingParts;
  /** The ends of ids, unique in all processes. */
  readonly nextId: () => string;
  readonly metrics: DecisionMetrics;
  readonly refusals: RefusalSink;
  /** Counts and logs an unexpected error. Never throws. */
  readonly onFault: (error: unknown, requestId?: string) => void;
}

export interface DecisionMetrics {
  observe(decision: Decision, tookMs: number): void;
  auditedRefusals: number;
}

/** Where what rules refuse, or would, is counted. */
export interface RefusalSink {
  note(inForce: PolicyInForce, rule: number, decision: Decision): void;
}

export interface Refused {
  readonly kind: "refuse";
  readonly requestId: string;
  /** The limit that the `RateLimit-*` headers show. */
  readonly shown: ShownLimit | undefined;
  readonly refusal: Refuse;
}

export interface Passed {
  readonly kind: "pass";
  readonly requestId: string;
  readonly shown: ShownLimit | undefined;
  readonly onward: Onward;
  /** Names and values by turns; none for a request without a valid key. */
  readonly identity: readonly string[];
}

export type Decided = Refused | Passed;

/**
 * Decides a request and records the decision. Returns without a promise when nothing has to be waited for. Never throws or rejects:
 * a fault of ours is reported and refuses the request. `startedMs` is of `performance.now()`.
 */
export function decide(
  parts: DecisionParts,
  request: ReceivedRequest,
  kind: RequestKind,
  startedMs: number,
): Decided | Promise<Decided> {
  return new Deciding(parts, startedMs).decide(request, kind);
}

class Deciding {
  readonly #parts: DecisionParts;
  readonly #startedMs: number;
  readonly #idEnding: string;
  readonly #requestId: string;
  /** `performance.now()` when the decision was made; 0 before. */
  #decidedMs = 0;
  #shown: ShownLimit | undefined;
  #identity: readonly string[] = NOTHING;
  /** The policy that the request was judged by. */
  #inForce: PolicyInForce | undefined;

  constructor(parts: DecisionParts, startedMs: number) {
    this.#parts = parts;
    this.#startedMs = startedMs;
    this.#idEnding = parts.nextId();
    this.#requestId = `req_${this.#idEnding}`;
  }

  decide(request: ReceivedRequest, kind: RequestKind): Decided | Promise<Decided> {
    try {
      this.#inForce = this.#parts.policy();
      const judgment = judge(request, kind, this.#inForce);
      if (judgment.kind === "verify") return this.#verify(judgment);
      return judgment.kind === "pass" ? this.#pass(judgment, judgment) : this.#refuse(judgment);
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
    const judgment = judgeVerdict(verification, verdict);
    return judgment.kind === "pass" ? this.#pass(judgment, verification) : this.#refuse(judgment);
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

  #pass({ decision, isAudited, rule }: Pass, onward: Onward): Passed {
    this.#observe(decision, rule);
    if (isAudited) this.#parts.metrics.auditedRefusals += 1;
    return { kind: "pass", requestId: this.#requestId, shown: this.#shown, onward, identity: this.#identity };
  }

  #refuse(refusal: Refuse): Refused {
    this.#observe(refusal.decision, refusal.rule);
    return { kind: "refuse", requestId: this.#requestId, shown: this.#shown, refusal };
  }

  #fail(error: unknown): Refused {
    this.#parts.onFault(error, this.#requestId);
    return this.#refuse(FAILED);
  }

  /** `rule`: what refused the request, or would have. */
  #observe(decision: Decision, rule: number | undefined): void {
    this.#parts.metrics.observe(decision, this.#tookMs());
    if (rule !== undefined && this.#inForce !== undefined) this.#parts.refusals.note(this.#inForce, rule, decision);
  }

  /** Returns how long the decision took. The clock is read once, so that event and metrics have the same value. */
  #tookMs(): number {
    if (this.#decidedMs === 0) this.#decidedMs = performance.now();
    return this.#decidedMs - this.#startedMs;
  }
}

const NOTHING: readonly string[] = [];

/** The gate failed to handle the request. */
export const FAILED: Refuse = { kind: "refuse", decision: "UNAVAILABLE", problem: internalProblem, closes: false };
