import { ERROR_KINDS } from "../../core/errors.ts";
import { notFoundStep } from "../../core/explanation/explain-key.ts";
import { explainRule, withLimitSteps } from "../../core/explanation/explain-rule.ts";
import type { ExplainedKey } from "../../core/explanation/shapes.ts";
import { planRule } from "../../core/policies/plan-rule.ts";
import { headersNamed } from "../../core/policies/rule-headers.ts";
import { createMemoryEdge, type Edge } from "../../edge/open.ts";
import type { Projection } from "../../edge/projection/contract.ts";
import { openProjection } from "../../edge/projection/projection.ts";
import { explain, explainWithoutKey } from "../../edge/verification/explain.ts";
import { RuleVerification } from "../../edge/verification/rule-verification.ts";
import { createCounting } from "../../sidecar/decision/counting.ts";
import {
  checkVerdict,
  evaluateHead,
  type HeadDecision,
  type Pass,
  type Refuse,
  refuseAttempt,
} from "../../sidecar/decision/evaluate-head.ts";
import { FailedAttempts } from "../../sidecar/decision/failed-attempts.ts";
import { tooManyAttemptsProblem } from "../../sidecar/decision/problems.ts";
import { count, type VerifyDeps, verify } from "../../sidecar/decision/verify.ts";
import type { ActivePolicy } from "../../sidecar/policy/active-policy.ts";
import type { Outcome } from "../outcomes.ts";
import { WORKSPACE, type World } from "./environment.ts";

/* Runs a gate without a network: the sidecar's evaluation and verification with the in-memory edge of `postern dev` and a manual clock. */

export interface GateRequest {
  readonly method: string;
  readonly path: string;
  /** Header names and values, alternating. */
  readonly rawHeaders: readonly string[];
  /** IP address of the client. */
  readonly clientAddress: string;
}

export interface Decided {
  readonly code: Outcome;
  readonly allowed: boolean;
  /** HTTP status; 200 stands for the response of the app. */
  readonly status: number;
  readonly retryAfter: number | undefined;
}

export interface Expected extends ExplainedKey {
  /** Verification code of the key; `undefined` if no key is verified. */
  readonly code: Outcome | undefined;
  /** Index of the rule; −1 for the implicit rule, `undefined` if no rule was reached. */
  readonly rule: number | undefined;
  readonly ruleName?: string | undefined;
}

const PROJECTION = "prj_decide";
const NOTHING = { permissions: { needed: [], held: [], heldCount: 0 }, limits: [] };
/** Timeout that is never reached, because the edge is in this process and responds immediately. */
const TIMEOUT_MS = 10_000;

export class OfflineGate {
  readonly #clock: { nowMs: number };
  readonly #edge: Edge;
  readonly #projection: Projection;
  readonly #parts: VerifyDeps;
  readonly #attempts: FailedAttempts;

  private constructor(clock: { nowMs: number }, edge: Edge, projection: Projection) {
    this.#clock = clock;
    this.#edge = edge;
    this.#projection = projection;
    const nowMs = (): number => clock.nowMs;
    const counters = edge.counters({ timeoutMs: TIMEOUT_MS });
    const counting = createCounting({
      projection,
      counters,
      nowMs,
      creditLoadMs: 0,
      podsAlive: () => 1,
      onFailure: () => undefined,
    });
    this.#parts = { ...counting, projection, workspaceId: WORKSPACE, nowMs, onStaleDecision: () => undefined };
    this.#attempts = new FailedAttempts({
      counters,
      workspaceId: WORKSPACE,
      nowMs,
      onInternalError: (error) => {
        throw error;
      },
    });
  }

  /** Opens a gate with empty counters and the credits of the environment. */
  static async open({ writes, keys }: World, nowMs: number): Promise<OfflineGate> {
    const clock = { nowMs };
    const edge = createMemoryEdge({ nowMs: () => clock.nowMs });
    const { writer, source, stream: feed } = edge;
    await writer.begin(PROJECTION, [WORKSPACE]);
    await writer.write({ projectionId: PROJECTION, version: 1, writes: [...writes] });
    await writer.complete(PROJECTION, [WORKSPACE]);
    const limited = keys.flatMap(({ keyId, credits: granted }) =>
      granted === undefined ? [] : [{ ref: { workspaceId: WORKSPACE, keyId }, counter: { rev: 1, granted, spent: 0 } }],
    );
    await edge.credits.load(limited);
    const projection = await openProjection({ source, stream: feed, follow: { workspaceId: WORKSPACE } });
    const gate = new OfflineGate(clock, edge, projection);
    await gate.advance(0);
    return gate;
  }

  /** Advances the clock and keeps the records fresh. */
  async advance(ms: number): Promise<void> {
    this.#clock.nowMs += ms;
    await this.#edge.writer.heartbeat(PROJECTION, this.#clock.nowMs, [WORKSPACE]);
  }

  /** Predicts and explains the result of `decide`. Charges nothing. */
  async foresee(active: ActivePolicy, request: GateRequest): Promise<Expected> {
    const { policy, record, rules } = active;
    const source = { id: record.policyId, name: record.name, ageMs: 0 };
    const { method, path, rawHeaders } = request;
    const [host] = headersNamed(["host"], rawHeaders);
    const found = explainRule(policy, { method, path, host, rawHeaders, source, gatesAgeMs: 0 }, rules);
    const decision = this.#judge(active, request);
    const about = { rule: found.index, ...(found.name === undefined ? {} : { ruleName: found.name }) };
    const retryAfterS = decision.kind === "verify" ? await this.#attempts.check(decision) : undefined;
    if (retryAfterS !== undefined) {
      const step = notFoundStep(tooManyAttemptsProblem(retryAfterS).detail, 0, false);
      return { ...NOTHING, code: undefined, ...about, steps: [...found.steps, step] };
    }
    if (decision.kind === "verify") {
      const verification = new RuleVerification(this.#parts, decision);
      const { code, explained } = await explain(this.#explainParts(), verification, { policy: source });
      return { ...explained, code, ...about, steps: [...found.steps, ...explained.steps] };
    }
    if (decision.kind === "count") {
      const audit = policy.mode === "Audit";
      const plan = planRule(undefined, decision.rule, { workspaceId: WORKSPACE, request: decision, audit });
      const counting = { plan, withoutStore: policy, policy: source };
      const { code, explained } = await explainWithoutKey(this.#explainParts(), counting);
      return { ...explained, code, ...about, steps: withLimitSteps(found.steps, explained.steps) };
    }
    const isSaid = found.code !== undefined;
    const why = decision.kind === "refuse" ? decision.problem.detail : "The request carries no API key.";
    const steps = isSaid ? found.steps : [...found.steps, notFoundStep(why, 0, false)];
    return { ...NOTHING, code: undefined, ...about, steps };
  }

  /** Evaluates the request as a sidecar does, and charges it. */
  async decide(active: ActivePolicy, request: GateRequest): Promise<Decided> {
    const decision = this.#judge(active, request);
    const outcome = await this.#outcomeOf(decision);
    const code = outcome.decision === "UNAVAILABLE" ? "UNKNOWN" : outcome.decision;
    if (outcome.kind === "pass") return { code, allowed: true, status: 200, retryAfter: undefined };
    const { kind, retryAfterS } = outcome.problem;
    return { code, allowed: false, status: ERROR_KINDS[kind].status, retryAfter: retryAfterS };
  }

  async #outcomeOf(decision: HeadDecision): Promise<Refuse | Pass> {
    if (decision.kind === "verify") {
      const retryAfterS = await this.#attempts.check(decision);
      if (retryAfterS !== undefined) return refuseAttempt(decision, retryAfterS);
      const verdict = await verify(this.#parts, decision);
      if (verdict.kind === "decided") this.#attempts.record(decision, verdict.code);
      return checkVerdict(decision, verdict);
    }
    return decision.kind === "count" ? checkVerdict(decision, await count(this.#parts, decision)) : decision;
  }

  async close(): Promise<void> {
    await this.#projection.close();
    await this.#edge.close();
  }

  #judge(active: ActivePolicy, { method, path, rawHeaders, clientAddress }: GateRequest): HeadDecision {
    const socket = { remoteAddress: clientAddress };
    return evaluateHead({ method, url: path, httpVersion: "1.1", rawHeaders, socket }, "request", active);
  }

  #explainParts() {
    const edge = this.#edge;
    return {
      nowMs: this.#parts.nowMs,
      projection: this.#projection,
      // Records have age 0, because the files were just read.
      recordsAgeMs: () => 0,
      peekLimits: edge.counters({ timeoutMs: TIMEOUT_MS }).peek,
      readCredits: async (ref: { readonly workspaceId: string; readonly keyId: string }) => {
        const [counter] = await edge.credits.read([ref]);
        return counter && Math.max(0, counter.granted - counter.spent);
      },
    };
  }
}
