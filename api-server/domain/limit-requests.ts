import { performance } from "node:perf_hooks";
import type { LimitCharge, LimitOutcome } from "../../core/charges.ts";
import type { OverrideRecord } from "../../core/verification/records.ts";
import type { RatelimitEvent } from "../../edge/events/contract.ts";
import type { Call } from "../procedure.ts";
import { knownValue } from "./lookups.ts";

/* What the procedures that limit by namespace have in common: which limit applies, and what is recorded of it. */

/** As requests have it; the duration is in ms. */
export interface LimitRequest {
  readonly identifier: string;
  readonly limit: number;
  readonly duration: number;
  readonly cost: number;
}

export interface AppliedLimit {
  readonly charge: LimitCharge;
  readonly override: OverrideRecord | undefined;
}

/** What the counters are asked for: an override replaces limit and duration; the cost stays (api-v2.md section 9.3). */
export async function applyLimit(
  { caller, deps }: Call<unknown>,
  namespaceId: string,
  { identifier, limit, duration, cost }: LimitRequest,
): Promise<AppliedLimit> {
  const { workspaceId } = caller;
  const override = knownValue(await deps.projection.findOverride(workspaceId, namespaceId, identifier));
  const charge: LimitCharge = {
    workspaceId,
    scope: { kind: "namespace", value: namespaceId },
    identifier,
    limit: override?.limit ?? limit,
    durationMs: override?.durationMs ?? duration,
    cost,
    accuracy: override?.async === true ? "local" : "strict",
  };
  return { charge, override };
}

/** What came of a charge, to be recorded. `id` is unique; `startedMs` is of `performance.now()`, `timeMs` of the wall. */
export function toLimitEvent(
  { origin }: Call<unknown>,
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
