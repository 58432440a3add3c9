import { performance } from "node:perf_hooks";
import type { LimitOutcome } from "../../../core/charges.ts";
import type { AppliedLimit } from "../../../edge/verification/apply-overrides.ts";
import type { Actor } from "../actor.ts";
import type { LimitDeps } from "../deps.ts";
import type { RequiredPermission } from "../permissions/required-permissions.ts";
import { consumeLimits } from "./counting.ts";
import { applyLimits, type LimitRequest, toLimitEvent } from "./limit-requests.ts";
import { type LimitPermissions, namespaceToLimit } from "./namespaces.ts";

/** Result of one limit call: the limit, the active override if any, and the count. */
export interface Limited extends AppliedLimit {
  readonly namespaceId: string;
  readonly outcome: LimitOutcome;
}

/**
 * Checks and consumes one limit in a namespace, which is given by id or name, and records the result. The namespace is created on first
 * use.
 * @throws PublicError 403, 410 for a deleted namespace, 500 if an override cannot be read now.
 */
export async function limitOnce<Required extends RequiredPermission>(
  actor: Actor<Required, LimitDeps>,
  permissions: LimitPermissions<Required>,
  request: LimitRequest & { readonly namespace: string },
): Promise<Limited> {
  const startedMs = performance.now();
  const { deps, origin } = actor;
  const namespace = await namespaceToLimit(actor, permissions, request.namespace);
  actor.require(permissions.limit, namespace.id);
  const [applied] = await applyLimits(actor, [{ namespaceId: namespace.id, request }]);
  if (applied === undefined) throw new Error("one limit was asked about and none was found");

  const consumed = await consumeLimits(deps, [applied.charge]);
  const [outcome] = consumed.limits;
  if (outcome === undefined) throw new Error("one limit was asked about and none was answered");

  // The request id also identifies the event, because a request consumes only one limit.
  deps.events.add(toLimitEvent(actor, applied, outcome, { id: origin.requestId, timeMs: consumed.nowMs, startedMs }));
  return { ...applied, namespaceId: namespace.id, outcome };
}
