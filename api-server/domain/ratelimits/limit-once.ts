import { performance } from "node:perf_hooks";
import type { LimitOutcome } from "../../../core/charges.ts";
import type { AppliedLimit } from "../../../edge/verification/apply-overrides.ts";
import type { NeededPermission } from "../../needed-permissions.ts";
import type { CallNeeding } from "../../procedure.ts";
import { consumeLimits } from "./counting.ts";
import { applyLimits, type LimitRequest, toLimitEvent } from "./limit-requests.ts";
import { type LimitPermissions, namespaceToLimit } from "./namespaces.ts";

/** What one limit call was answered: the limit with its override, and its count. */
export interface Limited extends AppliedLimit {
  readonly namespaceId: string;
  readonly outcome: LimitOutcome;
}

/**
 * Checks and consumes one limit in a namespace, by id or name, which is created when it is first used; and records it.
 * @throws PublicError 403, 410 for a deleted namespace, 500 when an override cannot be read now.
 */
export async function limitOnce<Needed extends NeededPermission>(
  call: CallNeeding<unknown, Needed>,
  permissions: LimitPermissions<Needed>,
  request: LimitRequest & { readonly namespace: string },
): Promise<Limited> {
  const startedMs = performance.now();
  const { deps, origin } = call;
  const namespace = await namespaceToLimit(call, permissions, request.namespace);
  call.require(permissions.limit, namespace.id);
  const [applied] = await applyLimits(call, [{ namespaceId: namespace.id, request }]);
  if (applied === undefined) throw new Error("one limit was asked about and none was found");

  const consumed = await consumeLimits(deps, [applied.charge]);
  const [outcome] = consumed.limits;
  if (outcome === undefined) throw new Error("one limit was asked about and none was answered");

  // One limit per request: its id is as unique as an event's must be.
  deps.events.add(toLimitEvent(call, applied, outcome, { id: origin.requestId, timeMs: consumed.nowMs, startedMs }));
  return { ...applied, namespaceId: namespace.id, outcome };
}
