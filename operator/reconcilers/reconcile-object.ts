import type { Kind } from "../../core/manifests/index.ts";
import { ApiUnavailable, RootKeyRejected } from "../api/client.ts";
import type { ObjectKey } from "../runtime/object-key.ts";
import type { WorkResult } from "../runtime/queue.ts";
import { ABANDON_ANNOTATION, type ManifestObject, storeFinalizersOf } from "../source/contract.ts";
import { admit, finalizerOf } from "./admission.ts";
import { type Context, LeadershipLost, type OperatorContext } from "./context.ts";
import { labelOf } from "./names-in-messages.ts";
import { blocked, type FurtherCondition, laterWhileHeld, type Result, type Verdict } from "./plan.ts";
import { conditionsOf, ownStatus, statusOf, whileUnavailable, withReconciling } from "./status.ts";
import { unknownFields } from "./unknown-fields.ts";

/*
 * Reconciles one object, in the same way for all kinds: admission, finalizer, the steps of its kind, status and Events. The operator adds
 * its finalizer before it creates a resource for an object, and removes the finalizer when the object owns no resource any more.
 */

/** Finalizer of an object. It is present while the object may own resources in the database. */
export interface Ownership {
  readonly isOwned: boolean;
  /** Sets the finalizer. Returns false if the namespace was assigned to another workspace in the meantime. */
  own(): Promise<boolean>;
  /** Removes the finalizer that `own` set. */
  disown(): Promise<void>;
}

export interface KindSteps {
  /** Makes the database match the object. If the result is `again`, the object is immediately reconciled again. */
  readonly reconcile: (object: ManifestObject, ctx: Context, ownership: Ownership) => Promise<Result | "again">;
  /** Returns the additional conditions if the object cannot be applied and the database was not read. */
  readonly held?: (verdict: Verdict) => readonly FurtherCondition[];
}

export async function reconcileObject(
  kind: Kind,
  steps: KindSteps,
  key: ObjectKey,
  ctx: OperatorContext,
): Promise<WorkResult> {
  const object = ctx.source.get(kind, key);
  if (object === undefined) return {};
  const isDeleting = object.metadata.deletionTimestamp !== undefined;
  if (isDeleting && storeFinalizersOf(object).length === 0) return {};
  if (isDeleting && object.metadata.annotations[ABANDON_ANNOTATION] === "true") return await abandon(object, ctx);
  const admission = admit(object, ctx);
  if (admission.verdict !== undefined) {
    const conditions = steps.held?.(admission.verdict) ?? [];
    return await conclude(object, { ...blocked(admission.verdict, ownStatus(object)), conditions }, ctx);
  }
  const { workspace, inWorkspace } = admission;
  const requireLeadership = () => {
    if (inWorkspace.signal.aborted) throw new LeadershipLost("this replica no longer leads");
  };
  const isOwned = object.metadata.finalizers.includes(finalizerOf(workspace));
  const synced = isOwned ? ctx.synced.recall(object, ctx.nowMs()) : undefined;
  if (synced !== undefined) return await conclude(object, { ...synced.result, seenAtMs: synced.seenAtMs }, ctx);
  const number = ctx.synced.begin(object);
  const seenAtMs = ctx.nowMs();
  const ownership: Ownership = {
    isOwned,
    own: async () => {
      if (isOwned) return true;
      await ctx.workspaces.confirm(object.metadata.namespace);
      const confirmed = admit(object, ctx);
      if (confirmed.workspace?.name !== workspace.name || confirmed.verdict !== undefined) return false;
      requireLeadership();
      await ctx.source.setFinalizers(object, [...foreignFinalizersOf(object), finalizerOf(workspace)]);
      return true;
    },
    disown: async () => {
      requireLeadership();
      const now = ctx.source.get(kind, key) ?? object;
      await ctx.source.setFinalizers(now, foreignFinalizersOf(now));
    },
  };
  try {
    const result = await steps.reconcile(object, inWorkspace, ownership);
    requireLeadership();
    if (result === "again") return { requeueAfterMs: 0 };
    if (result.released) return await letGo(object, ctx);
    const { digest } = result;
    if (digest !== undefined) ctx.synced.settle({ object, result, digest, seenAtMs }, number);
    return await conclude(object, result, ctx);
  } catch (error) {
    requireLeadership();
    if (error instanceof ApiUnavailable) await reportUnavailable(steps, object, error, ctx);
    throw error;
  }
}

async function conclude(object: ManifestObject, result: Result, ctx: OperatorContext): Promise<WorkResult> {
  // The object may have changed in the meantime. The status must still describe the generation that was reconciled.
  const now = current(object, ctx);
  const unknown = unknownFields(now, conditionsOf(now));
  const { verdict, drift } = result;
  const { status, events } = statusOf({
    object: now,
    verdict,
    conditions: [...(result.conditions ?? []), ...(unknown === undefined ? [] : [unknown])],
    own: result.status,
    nowMs: ctx.nowMs(),
  });
  if (verdict.state === "Ready") ctx.syncs.note(object, result.seenAtMs ?? ctx.nowMs());
  if (status !== undefined) await ctx.source.updateStatus(object, status);
  for (const event of events) await ctx.source.recordEvent(object, event);
  if (drift !== undefined) {
    const note = `The stored state differed from the manifest and was corrected: ${drift}.`;
    await ctx.source.recordEvent(object, { type: "Warning", reason: "DriftCorrected", action: "Correct", note });
  }
  const { requeueAfterMs } = result;
  return {
    requeueAfterMs:
      verdict.reason === "Conflict" ? laterWhileHeld(requeueAfterMs, heldForMs(now, ctx)) : requeueAfterMs,
  };
}

/** Returns the duration for which the object has been Stalled, ms; 0 if it is not Stalled. */
function heldForMs(object: ManifestObject, { nowMs }: Pick<OperatorContext, "nowMs">): number {
  const stalledSince = conditionsOf(object).find(({ type }) => type === "Stalled")?.lastTransitionTime;
  return stalledSince === undefined ? 0 : nowMs() - Date.parse(stalledSince);
}

/** Returns the reconciled generation with the newest status and finalizers. */
function current(object: ManifestObject, { source }: OperatorContext): ManifestObject {
  const now = source.get(object.kind, object.metadata);
  return now?.metadata.uid === object.metadata.uid ? { ...object, status: now.status } : object;
}

async function letGo(object: ManifestObject, ctx: OperatorContext): Promise<WorkResult> {
  await ctx.source.setFinalizers(object, foreignFinalizersOf(object));
  ctx.log.info({ object: labelOf(object) }, "cleaned up after the deleted manifest");
  return {};
}

function foreignFinalizersOf(object: ManifestObject): string[] {
  const ours = storeFinalizersOf(object);
  return object.metadata.finalizers.filter((finalizer) => !ours.includes(finalizer));
}

async function abandon(object: ManifestObject, ctx: OperatorContext): Promise<WorkResult> {
  const note = `Deleted without cleaning up stored objects, because of the annotation ${ABANDON_ANNOTATION}.`;
  await ctx.source.recordEvent(object, { type: "Warning", reason: "Abandoned", action: "Abandon", note });
  return await letGo(object, ctx);
}

async function reportUnavailable(
  steps: KindSteps,
  object: ManifestObject,
  error: ApiUnavailable,
  ctx: OperatorContext,
): Promise<void> {
  const hint = object.metadata.deletionTimestamp
    ? ` If the database no longer exists, annotate the object with ${ABANDON_ANNOTATION}=true.`
    : "";
  const { verdict, keepReady } = whileUnavailable(object, {
    message: `${error.message}; the operator retries.${hint}`,
    isKeyRefused: error instanceof RootKeyRejected,
  });
  if (keepReady) {
    const status = withReconciling(object, verdict, ctx.nowMs());
    if (status !== undefined) await ctx.source.updateStatus(object, status);
    return;
  }
  const conditions = steps.held?.(verdict) ?? [];
  const { status } = statusOf({ object, verdict, conditions, own: ownStatus(object), nowMs: ctx.nowMs() });
  if (status !== undefined) await ctx.source.updateStatus(object, status);
}
