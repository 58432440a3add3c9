import { identityHeaders } from "../../core/policies/identity-headers.ts";
import { type ShownLimit, showTightest } from "../../core/ratelimits/limit-headers.ts";
import type { KeyView } from "../../core/verification/key-view.ts";
import { type RecordingParts, recordVerification } from "../../edge/verification/record.ts";
import type { Verdict } from "../../edge/verification/verify.ts";
import type { ServerExchange } from "../../http1/server-exchange.ts";
import { type ForwardParts, forward } from "../app/forward.ts";
import { openUpgrade, type UpgradeParts } from "../app/upgrade.ts";
import { type AnswerParts, answerProblem } from "../http/answering.ts";
import { CONTINUE, type RequestHandlers } from "../http/listener.ts";
import type { PolicyInForce } from "../policy/in-force.ts";
import {
  type Decision,
  judge,
  judgeVerdict,
  type Onward,
  type Pass,
  type Refuse,
  type RequestKind,
  type Verify,
} from "./judge.ts";
import { internalProblem } from "./problems.ts";
import { type VerifyParts, verify } from "./verify.ts";

/*
 * One request: its head is judged, its key is verified if it needs one, and then it is forwarded to the app or gets a response
 * of our own. `judge.ts` decides; this file acts.
 */

export interface ExchangeParts {
  readonly policy: () => PolicyInForce | undefined;
  readonly verifying: VerifyParts;
  readonly recording: RecordingParts;
  readonly answering: AnswerParts;
  readonly forwarding: ForwardParts;
  readonly upgrading: UpgradeParts;
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

/** Begins an exchange with each request. */
export function createGate(parts: ExchangeParts): RequestHandlers {
  const begin = (kind: RequestKind) => (client: ServerExchange) => new Exchange(parts, client, kind).begin();
  return { request: begin("request"), expectant: begin("expectant"), upgrade: begin("upgrade") };
}

/** One request, from its head to the app or to a response of our own. */
export class Exchange {
  readonly requestId: string;
  readonly #parts: ExchangeParts;
  readonly #client: ServerExchange;
  readonly #kind: RequestKind;
  readonly #startedMs = performance.now();
  readonly #idEnding: string;
  /** `performance.now()` when the decision was made; 0 before. */
  #decidedMs = 0;
  #shown: ShownLimit | undefined;
  /** The policy that the request was judged by. */
  #inForce: PolicyInForce | undefined;

  constructor(parts: ExchangeParts, client: ServerExchange, kind: RequestKind) {
    this.#parts = parts;
    this.#client = client;
    this.#kind = kind;
    this.#idEnding = parts.answering.nextId();
    this.requestId = `req_${this.#idEnding}`;
  }

  /** Never throws: a failure here affects only this request. */
  begin(): void {
    try {
      this.#inForce = this.#parts.policy();
      const judgment = judge(this.#client, this.#kind, this.#inForce);
      if (judgment.kind === "verify") this.#verify(judgment);
      else if (judgment.kind === "pass") this.#pass(judgment, judgment);
      else this.#refuse(judgment);
    } catch (error) {
      this.#fail(error);
    }
  }

  #verify(verification: Verify): void {
    const verdict = verify(this.#parts.verifying, verification);
    if (verdict instanceof Promise) {
      verdict.then((late) => this.#act(verification, late)).catch((error: unknown) => this.#fail(error));
    } else this.#act(verification, verdict);
  }

  #act(verification: Verify, verdict: Verdict): void {
    if (verdict.kind === "decided") {
      const { counted } = verdict;
      if (counted?.consumed !== undefined) this.#shown = showTightest(counted.limits, counted.consumed);
      if (verdict.view !== undefined) this.#tellWho(verification, verdict, verdict.view);
    }
    const judgment = judgeVerdict(verification, verdict);
    if (judgment.kind === "pass") this.#pass(judgment, verification);
    else this.#refuse(judgment);
  }

  /** Reports one event for each decision about a known key; tells the app by headers if the key is valid. */
  #tellWho({ head }: Verify, { code, counted }: Verdict & { kind: "decided" }, view: KeyView): void {
    const { recording, verifying } = this.#parts;
    recordVerification(recording, view, {
      id: `ev_${this.#idEnding}`,
      requestId: this.requestId,
      timeMs: verifying.nowMs(),
      outcome: code,
      tags: NO_TAGS,
      spentCredits: counted?.spentCredits ?? 0,
      latencyMs: Math.round(this.#tookMs()),
    });
    if (code === "VALID") for (const text of identityHeaders(view)) head.forwarded.push(text);
  }

  #pass({ decision, isAudited, rule }: Pass, onward: Onward): void {
    this.#observe(decision, rule);
    if (isAudited) this.#parts.metrics.auditedRefusals += 1;
    // Its body turned out to be malformed meanwhile, which was the response.
    if (this.#client.headersSent || this.#client.isOver) return;
    const { requestId } = this;
    onward.head.forwarded.push("X-Postern-Request-Id", requestId);
    const shown = this.#shown;
    if (this.#kind === "upgrade") {
      // An upgraded connection may stay for days. It must not keep the policy that let it in.
      const { method, path, hash, clientIp } = onward;
      const additions = { requestId, shown, admission: { method, path, hash, clientIp } };
      openUpgrade(this.#parts.upgrading, this.#client, onward, additions, this.#startedMs);
      return;
    }
    const additions = { requestId, shown, admission: onward };
    if (this.#kind === "expectant") this.#client.writeInterim(CONTINUE);
    forward(this.#parts.forwarding, this.#client, onward, additions, this.#startedMs);
  }

  #refuse({ decision, problem, closes, rule }: Refuse): void {
    this.#observe(decision, rule);
    const { requestId } = this;
    // A client that waits for 100 Continue may send its body or not (RFC 9110, 10.1.1).
    const close = closes || this.#kind !== "request";
    answerProblem(this.#parts.answering, this.#client, problem, { requestId, shown: this.#shown, close });
  }

  #fail(error: unknown): void {
    this.#parts.onFault(error, this.requestId);
    try {
      if (!this.#client.headersSent) {
        this.#refuse(FAILED);
        return;
      }
    } catch (answerError) {
      this.#parts.onFault(answerError, this.requestId);
    }
    this.#client.socket.destroy();
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

const FAILED: Refuse = { kind: "refuse", decision: "UNAVAILABLE", problem: internalProblem, closes: false };

const NO_TAGS: readonly string[] = [];
