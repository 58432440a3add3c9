import { performance } from "node:perf_hooks";
import { PublicError } from "../../../core/errors.ts";
import type { Code } from "../../../core/verification/codes.ts";
import type { KeyView } from "../../../core/verification/key-view.ts";
import type { Counted, Uncountable } from "../../../edge/verification/count.ts";
import { recordVerification } from "../../../edge/verification/record.ts";
import type { Verdict } from "../../../edge/verification/verify.ts";
import type { CreditsDeps, VerificationDeps } from "../deps.ts";

/*
 * Steps that `keys.verifyKey` of v1 and of v2 both take after a verdict from edge/verification: the event, the remaining credits, and the
 * error for a call without a decision.
 */

const NO_TAGS: readonly string[] = [];

export interface VerifiedCall {
  readonly requestId: string;
  readonly code: Code;
  readonly tags: readonly string[] | undefined;
  readonly counted: Counted | undefined;
  /** Start of the call, as `performance.now()`. */
  readonly startedMs: number;
}

/** Queues the event of a verification. Called if the verification found a key, whether or not the key was valid. */
export function recordCall(
  deps: VerificationDeps,
  view: KeyView,
  { requestId, code, tags = NO_TAGS, counted, startedMs }: VerifiedCall,
): void {
  recordVerification(deps, view, {
    // The request id also identifies the event, because a request has only one verification.
    id: requestId,
    requestId,
    timeMs: deps.nowMs(),
    outcome: code,
    tags,
    spentCredits: counted?.spentCredits ?? 0,
    latencyMs: Math.round((performance.now() - startedMs) * 1000) / 1000,
  });
}

/**
 * Returns the credits that remain after the charge; `undefined` if they are unlimited, or if an earlier check rejected the call before the
 * charge.
 */
export function remainingAfter(
  { credits: service }: Pick<CreditsDeps, "credits">,
  { key: { limited, workspaceId, keyId } }: KeyView,
  { consumed }: Counted,
): number | undefined | Promise<number | undefined> {
  const credits = consumed?.credits;
  if (!limited || credits === undefined || credits.status === "unknown") return undefined;
  return credits.remaining ?? service.readRemaining({ workspaceId, keyId });
}

/** Returns the error for a verification without a decision: 500 `service_unavailable`, or the error of Redis or Postgres. */
export function undecided(verdict: Uncountable | (Verdict & { kind: "unknown" })): unknown {
  if (verdict.kind === "unknown") {
    const cause = new Error(verdict.reason);
    return new PublicError("service_unavailable", "The key cannot be looked up now.", { cause });
  }
  return verdict.cause ?? new PublicError("service_unavailable", "The credits of the key cannot be counted now.");
}
