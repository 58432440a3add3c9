import type { IncomingMessage, ServerResponse } from "node:http";
import { identityHeaders } from "../../core/policies/identity-headers.ts";
import { type ShownLimit, showTightest } from "../../core/ratelimits/limit-headers.ts";
import type { KeyView } from "../../core/verification/key-view.ts";
import { type RecordingParts, recordVerification } from "../../edge/verification/record.ts";
import type { Verdict } from "../../edge/verification/verify.ts";
import { Forwarding, type ForwardParts } from "../app/forward.ts";
import type { Places } from "../app/places.ts";
import { type Problem, sendProblem } from "../http/answers.ts";
import { drainBody, lingerAfterAnswer } from "../http/linger.ts";
import type { Admission } from "../http/ongoing.ts";
import { RequestBody } from "../http/request-body.ts";
import type { Metrics } from "../metrics.ts";
import type { PolicyInForce } from "../policy/in-force.ts";
import { type Decision, judge, judgeVerdict, type Onward, type Pass, type Refuse, type Verify } from "./judge.ts";
import { internalProblem } from "./problems.ts";
import { mayGoOn, type VerifyParts, verify } from "./verify.ts";

/*
 * The way of a request: its head is judged, its key is verified if it needs one, and then it goes to the app or gets an answer
 * of our own. What is to be done is decided in `judge.ts`; here it is done.
 */

export interface GateParts extends VerifyParts, RecordingParts, ForwardParts {
  readonly policy: () => PolicyInForce | undefined;
  readonly metrics: Metrics;
  readonly nextId: () => string;
  readonly docsUrl: string;
  /** For connections that are upgraded, or being upgraded. */
  readonly upgrades: Places;
  /** Logs why an app's answer cannot be passed on. */
  readonly onUnusableAnswer: (why: string, requestId: string) => void;
  /** Counts and logs what should not have been thrown. Never throws itself. */
  readonly onFault: (error: unknown, requestId?: string) => void;
}

/** How a request goes on when it is let through. */
export type Passage =
  | { readonly kind: "request" }
  /** The client waits for `100 Continue` before it sends its body. */
  | { readonly kind: "expectant" }
  | { readonly kind: "upgrade"; readonly open: (upgrade: UpgradeRequest) => void };

export interface UpgradeRequest {
  readonly target: string;
  readonly headers: string[];
  readonly requestId: string;
  readonly shown: ShownLimit | undefined;
  readonly admission: Admission;
  /** Among whose requests and connections places are shared. */
  readonly address: string;
  readonly startedMs: number;
}

export const REQUEST: Passage = { kind: "request" };
export const EXPECTANT: Passage = { kind: "expectant" };

/** One request, from its head to the app or to an answer of our own. */
export class Exchange {
  readonly requestId: string;
  readonly #gate: GateParts;
  readonly #req: IncomingMessage;
  readonly #res: ServerResponse;
  readonly #passage: Passage;
  readonly #startedMs = performance.now();
  readonly #idEnding: string;
  /** `performance.now()` when the decision was made; 0 before. */
  #decidedMs = 0;
  #shown: ShownLimit | undefined;

  constructor(gate: GateParts, req: IncomingMessage, res: ServerResponse, passage: Passage) {
    this.#gate = gate;
    this.#req = req;
    this.#res = res;
    this.#passage = passage;
    this.#idEnding = gate.nextId();
    this.requestId = `req_${this.#idEnding}`;
  }

  /** Never throws: what fails here fails this request alone. */
  begin(): void {
    try {
      const judgment = judge(this.#req, this.#passage.kind, this.#gate.policy());
      if (judgment.kind === "verify") this.#verify(judgment);
      else if (judgment.kind === "pass") this.#pass(judgment, judgment);
      else this.#refuse(judgment);
    } catch (error) {
      this.#fail(error);
    }
  }

  #verify(verification: Verify): void {
    const verdict = verify(this.#gate, verification);
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
    const judgment = judgeVerdict(verification.inForce, verdict);
    if (judgment.kind === "pass") this.#pass(judgment, verification);
    else this.#refuse(judgment);
  }

  /** To the centre by one event for each decision about a known key, whatever it was; to the app by headers if it is valid. */
  #tellWho({ head }: Verify, { code, counted }: Verdict & { kind: "decided" }, view: KeyView): void {
    const gate = this.#gate;
    recordVerification(gate, view, {
      id: `ev_${this.#idEnding}`,
      requestId: this.requestId,
      timeMs: gate.nowMs(),
      outcome: code,
      tags: NO_TAGS,
      spentCredits: counted?.spentCredits ?? 0,
      latencyMs: Math.round(this.#tookMs()),
    });
    if (code === "VALID") for (const text of identityHeaders(view)) head.forwarded.push(text);
  }

  #pass({ decision, isAudited }: Pass, onward: Onward): void {
    this.#observe(decision);
    if (isAudited) this.#gate.metrics.auditedRefusals += 1;
    // Its body turned out to be malformed meanwhile, and that was the answer.
    if (this.#res.headersSent) return;
    const { method, target, address } = onward;
    const { forwarded: headers, hasBody, bodyLength } = onward.head;
    headers.push("X-Postern-Request-Id", this.requestId);
    const passage = this.#passage;
    if (passage.kind === "upgrade") {
      const { requestId } = this;
      const [shown, startedMs] = [this.#shown, this.#startedMs];
      passage.open({ target, headers, requestId, shown, admission: onward, address, startedMs });
      return;
    }
    if (passage.kind === "expectant") this.#res.writeContinue();
    const body = hasBody ? new RequestBody(this.#gate, this.#req, bodyLength) : null;
    const extras = { requestId: this.requestId, shown: this.#shown, admission: onward };
    const forwarding = new Forwarding(this.#gate, this.#res, body, extras, this.#startedMs);
    forwarding.send({ method, target, headers, address });
  }

  #refuse({ decision, problem, closes }: Refuse): void {
    this.#observe(decision);
    const { requestId } = this;
    const options = { requestId, shown: this.#shown, close: closes, passage: this.#passage };
    answerProblem(this.#gate, this.#res, problem, options);
  }

  #fail(error: unknown): void {
    this.#gate.onFault(error, this.requestId);
    try {
      if (!this.#res.headersSent) {
        this.#refuse(FAILED);
        return;
      }
    } catch (answerError) {
      this.#gate.onFault(answerError, this.requestId);
    }
    this.#req.socket.destroy();
  }

  #observe(decision: Decision): void {
    this.#gate.metrics.observe(decision, this.#tookMs());
  }

  /** How long the decision took. The event and the metrics tell of one moment, so the clock is read for the first. */
  #tookMs(): number {
    if (this.#decidedMs === 0) this.#decidedMs = performance.now();
    return this.#decidedMs - this.#startedMs;
  }
}

const FAILED: Refuse = { kind: "refuse", decision: "UNAVAILABLE", problem: internalProblem, closes: false };

const NO_TAGS: readonly string[] = [];

/** Ends an exchange with an answer of our own, whatever the client is still sending. */
export function answerProblem(
  gate: GateParts,
  res: ServerResponse,
  problem: Problem,
  options: { requestId: string; shown?: ShownLimit | undefined; close: boolean; passage: Passage },
): void {
  const { req } = res;
  // Answered already: what came after a fault in the body, for one.
  if (res.destroyed || res.headersSent) return;
  // Nobody knows whether a client that was told to wait will send its body all the same (RFC 9110, 10.1.1).
  const close = options.close || options.passage.kind !== "request" || gate.isClosing();
  if (close && (!gate.isClosing() || !req.complete)) lingerAfterAnswer(req.socket);
  sendProblem(res, problem, { requestId: options.requestId, docsUrl: gate.docsUrl, shown: options.shown, close });
  if (!close) drainBody(req, { bytesMax: gate.drainBytesMax, turns: gate.pieceTurns });
}

/** Whether what let a request in would still let it in: asked of connections and streams that stay open. */
export async function isStillValid(gate: GateParts, admission: Admission): Promise<boolean> {
  const inForce = gate.policy();
  if (inForce === undefined || inForce.policy.mode === "Audit") return true;
  const rule = inForce.rules.match(admission.method, admission.path);
  if (rule.access === "Anonymous") return true;
  const { hash, clientIp } = admission;
  if (hash === undefined) return false;
  return mayGoOn(gate, { inForce, rule, hash, clientIp });
}
