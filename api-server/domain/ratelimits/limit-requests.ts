import { performance } from "node:perf_hooks";
import type { LimitCharge, LimitOutcome } from "../../../core/charges.ts";
import type { RatelimitEvent } from "../../../edge/events/contract.ts";
import { type AppliedLimit, applyOverrides } from "../../../edge/verification/apply-overrides.ts";
import type { Actor } from "../actor.ts";
import type { LimitDeps } from "../deps.ts";
import { notKnown } from "../refusals/refusals.ts";

/* Functions for all procedures that charge limits of a namespace. They find the limit that applies, and create the event of a charge. */

/** A limit in a request; the duration is in ms. */
export interface LimitRequest {
  readonly identifier: string;
  readonly limit: number;
  readonly duration: number;
  readonly cost: number;
  /** Accuracy of the counter. Default: `strict`. */
  readonly accuracy?: LimitCharge["accuracy"];
}

/** Returns the charges, in order, with the active overrides. Throws PublicError 500 if an override cannot be read now. */
export async function applyLimits(
  { caller, deps }: Pick<Actor<never, LimitDeps>, "caller" | "deps">,
  requests: readonly { readonly namespaceId: string; readonly request: LimitRequest }[],
): Promise<readonly AppliedLimit[]> {
  const { workspaceId } = caller;
  const charges = requests.map(
    ({ namespaceId, request: { identifier, limit, duration, cost, accuracy = "strict" } }): LimitCharge => ({
      workspaceId,
      scope: { kind: "namespace", value: namespaceId },
      identifier,
      limit,
      durationMs: duration,
      cost,
      accuracy,
    }),
  );
  const applied = await applyOverrides(deps.projection, charges);
  if ("unusable" in applied) throw notKnown();
  return applied.limits;
}

/** Returns the event of a charge. `id` is unique; `startedMs` is from `performance.now()`, `timeMs` from the wall clock. */
export function toLimitEvent(
  { origin }: Pick<Actor, "origin">,
  { charge, override }: AppliedLimit,
  outcome: LimitOutcome,
  { id, timeMs, startedMs }: { readonly id: string; readonly timeMs: number; readonly startedMs: number },
): RatelimitEvent {
  return {
    type: "ratelimit",
    id,
    requestId: origin.requestId,
    timeMs,
    workspaceId: charge.workspaceId,
    namespaceId: charge.scope.value,
    identifier: charge.identifier,
    passed: outcome.passed,
    latencyMs: performance.now() - startedMs,
    overrideId: override?.id,
    limit: charge.limit,
    remaining: outcome.remaining,
    resetMs: outcome.resetMs,
    cost: charge.cost,
  };
}
