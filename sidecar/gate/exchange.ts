import type { IncomingMessage, ServerResponse } from "node:http";
import { hashKey } from "../../core/keys/key-string.ts";
import { checkTarget } from "../../core/policies/check-path.ts";
import type { CompiledRule } from "../../core/policies/match-rule.ts";
import type { Code } from "../../core/verification/codes.ts";
import type { LineSink } from "../../edge/events/contract.ts";
import { verificationLine } from "../../edge/events/verification-line.ts";
import { Forwarding, type ForwardParts } from "../app/forward.ts";
import type { Places } from "../app/places.ts";
import { malformedProblem, type Problem, type ShownLimit, sendProblem, versionProblem } from "../http/answers.ts";
import { networkOf } from "../http/client-address.ts";
import { compileHeadReader, type Head } from "../http/head.ts";
import { drainBody, lingerAfterAnswer } from "../http/linger.ts";
import type { Admission } from "../http/ongoing.ts";
import { RequestBody } from "../http/request-body.ts";
import type { Decision, Metrics } from "../metrics.ts";
import type { PolicyInForce } from "../policy/in-force.ts";
import { type PreparedKey, prepareKey } from "./prepared-key.ts";
import {
  duplicateKeyProblem,
  internalProblem,
  missingKeyProblem,
  refusalProblem,
  unavailableProblem,
} from "./problems.ts";
import { recheck, type Verdict, type VerifyParts, verify } from "./verify.ts";

/*
 * The way of a request. What can be told from its head alone comes first (framing, path, rule, credential), then the key,
 * then either the app or an answer of our own.
 */

export interface GateParts extends VerifyParts, ForwardParts {
  readonly policy: () => PolicyInForce | undefined;
  readonly events: LineSink;
  readonly metrics: Metrics;
  readonly nextId: () => string;
  readonly region: string;
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

const readAnyHead = compileHeadReader([]);

/** One request, from its head to the decision. */
export class Exchange implements Admission {
  readonly method: string;
  readonly requestId: string;
  path = "";
  hash: string | undefined;
  clientIp: string | undefined;
  readonly #gate: GateParts;
  readonly #req: IncomingMessage;
  readonly #res: ServerResponse;
  readonly #passage: Passage;
  readonly #startedMs = performance.now();
  readonly #idEnding: string;
  /** 0 until then. */
  #decidedMs = 0;
  #head: Head | undefined;
  #target = "";
  /** The client's, as the policy finds it; the connection's when it does not say. */
  #address = "";
  #shown: ShownLimit | undefined;

  constructor(gate: GateParts, req: IncomingMessage, res: ServerResponse, passage: Passage) {
    this.#gate = gate;
    this.#req = req;
    this.#res = res;
    this.#passage = passage;
    this.method = req.method ?? "";
    this.#idEnding = gate.nextId();
    this.requestId = `req_${this.#idEnding}`;
  }

  /** Never throws: what fails here fails this request alone. */
  begin(): void {
    try {
      this.#begin();
    } catch (error) {
      this.#fail(error);
    }
  }

  #begin(): void {
    const inForce = this.#gate.policy();
    const head = (inForce?.readHead ?? readAnyHead)(this.#req.rawHeaders, this.#req.httpVersion);
    this.#head = head;
    if (this.#req.httpVersion !== "1.1" && this.#req.httpVersion !== "1.0") {
      this.#refuse("MALFORMED", versionProblem, { close: true });
    } else if (head.malformed !== undefined) {
      this.#refuse("MALFORMED", malformedProblem(head.malformed), { close: true });
    } else if (head.hasBody && this.#passage.kind === "upgrade") {
      this.#refuse("MALFORMED", malformedProblem("A request for an upgrade has no body."), { close: true });
    } else if (inForce === undefined) {
      this.#refuse("UNAVAILABLE", unavailableProblem("The gate has not received its policy yet."));
    } else {
      this.#applyPolicy(inForce, head);
    }
  }

  #applyPolicy(inForce: PolicyInForce, head: Head): void {
    const connectionIp = this.#req.socket.remoteAddress ?? "";
    const clientIp = inForce.findClientAddress?.(connectionIp, head.forwardedFor);
    this.#address = networkOf(clientIp ?? connectionIp);
    const url = this.#req.url ?? "";
    const target = checkTarget(url, inForce.targetOptions);
    if ("refused" in target) {
      this.#refuseTarget(inForce, url, target.refused);
      return;
    }
    const query = inForce.readQuery?.(target.query);
    this.path = target.path;
    this.#target = target.path + (query?.query ?? target.query);

    const rule = inForce.rules.match(this.method, target.path);
    if (rule.access === "Anonymous") {
      this.#pass("ANONYMOUS");
      return;
    }
    const isInQuery = query !== undefined && query.credentialAt < head.credentialAt;
    const credential = isInQuery ? query.credential : head.credential;
    if (head.duplicateCredential || query?.duplicate === true) {
      this.#refuseOrAudit(inForce, "MALFORMED", duplicateKeyProblem);
    } else if (credential === undefined) {
      this.#refuseOrAudit(inForce, "MISSING_KEY", missingKeyProblem);
    } else {
      this.hash = hashKey(credential);
      this.clientIp = clientIp;
      this.#verify(inForce, rule, this.hash);
    }
  }

  #verify(inForce: PolicyInForce, rule: CompiledRule, hash: string): void {
    const verdict = verify(this.#gate, { inForce, rule, hash, clientIp: this.clientIp });
    if (verdict instanceof Promise) {
      verdict.then((late) => this.#settle(inForce, late)).catch((error: unknown) => this.#fail(error));
    } else this.#settle(inForce, verdict);
  }

  #settle(inForce: PolicyInForce, verdict: Verdict): void {
    if (verdict.code === undefined) {
      this.#refuseOrAudit(inForce, "UNAVAILABLE", unavailableProblem(verdict.unavailable));
      return;
    }
    const { code, view, shown, retryAfterS } = verdict;
    this.#shown = shown;
    const prepared = view && prepareKey(view, this.#gate.region);
    if (prepared !== undefined) this.#record(code, prepared, verdict.spentCredits);
    if (code !== "VALID") {
      this.#refuseOrAudit(inForce, code, refusalProblem(code, retryAfterS));
      return;
    }
    if (prepared !== undefined) for (const text of prepared.identityHeaders) this.#head?.forwarded.push(text);
    this.#pass(code);
  }

  /** One event for each decision about a known key, whatever it was. */
  #record(code: Code, prepared: PreparedKey, spentCredits: number): void {
    const gate = this.#gate;
    const line = verificationLine(prepared.eventSubject, {
      id: `ev_${this.#idEnding}`,
      requestId: this.requestId,
      timeMs: gate.nowMs(),
      outcome: code,
      tags: NO_TAGS,
      spentCredits,
      latencyMs: Math.round(this.#tookMs()),
    });
    gate.events.addLine(gate.workspaceId, line);
  }

  #pass(decision: Decision): void {
    this.#observe(decision);
    // Its body turned out to be malformed meanwhile, and that was the answer.
    if (this.#res.headersSent) return;
    const { forwarded: headers, hasBody, bodyLength } = this.#head as Head;
    const address = this.#address;
    headers.push("X-Postern-Request-Id", this.requestId);
    const passage = this.#passage;
    if (passage.kind === "upgrade") {
      passage.open({
        target: this.#target,
        headers,
        requestId: this.requestId,
        shown: this.#shown,
        admission: this,
        address,
        startedMs: this.#startedMs,
      });
      return;
    }
    if (passage.kind === "expectant") this.#res.writeContinue();
    const body = hasBody ? new RequestBody(this.#gate, this.#req, bodyLength) : null;
    const extras = { requestId: this.requestId, shown: this.#shown, admission: this };
    const forwarding = new Forwarding(this.#gate, this.#res, body, extras, this.#startedMs);
    forwarding.send({ method: this.method, target: this.#target, headers, address });
  }

  /** Audit mode lets through what it cannot or would not let through, without saying who it is. */
  #refuseOrAudit(inForce: PolicyInForce, decision: Decision, problem: Problem): void {
    if (inForce.policy.mode === "Audit") {
      this.#gate.metrics.auditedRefusals += 1;
      this.#pass(decision);
    } else {
      this.#refuse(decision, problem);
    }
  }

  #refuseTarget(inForce: PolicyInForce, url: string, reason: string): void {
    const problem = malformedProblem(`The request is refused because ${reason}.`, "path");
    const question = url.indexOf("?");
    const query = question === -1 ? undefined : inForce.readQuery?.(url.slice(question));
    this.path = url;
    this.#target = query === undefined ? url : url.slice(0, question) + query.query;
    // Without a path there is nothing that even Audit mode could pass on.
    if (url.startsWith("/")) this.#refuseOrAudit(inForce, "MALFORMED", problem);
    else this.#refuse("MALFORMED", problem);
  }

  #refuse(decision: Decision, problem: Problem, { close = false }: { close?: boolean } = {}): void {
    this.#observe(decision);
    this.#answer(problem, close);
  }

  #answer(problem: Problem, close: boolean): void {
    const { requestId } = this;
    answerProblem(this.#gate, this.#res, problem, { requestId, shown: this.#shown, close, passage: this.#passage });
  }

  #fail(error: unknown): void {
    this.#gate.onFault(error, this.requestId);
    try {
      if (!this.#res.headersSent) {
        this.#refuse("UNAVAILABLE", internalProblem);
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
  const code = await recheck(gate, { inForce, rule, hash, clientIp });
  return code === "VALID" || code === "Unknown";
}
