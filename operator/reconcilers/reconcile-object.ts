import type { FieldProblem } from "../../core/api/procedures.ts";
import type { Kind } from "../../core/manifests/index.ts";
import { ApiUnavailable, type Refusal, RootKeyRejected } from "../api/client.ts";
import type { ObjectKey } from "../runtime/object-key.ts";
import type { WorkResult } from "../runtime/queue.ts";
import { ABANDON_ANNOTATION, type ManifestObject, storeFinalizersOf } from "../source/contract.ts";
import { admit, finalizerOf } from "./admission.ts";
import { type Context, managerOf, type OperatorContext } from "./context.ts";
import { labelOf, withoutForeignManagers } from "./names-in-messages.ts";
import {
  blocked,
  CONFLICT_REQUEUE_MS,
  type FurtherCondition,
  laterWhileHeld,
  type Plan,
  progressing,
  stalled,
  type Verdict,
} from "./plan.ts";
import { conditionsOf, statusOf, wasReady, whileUnavailable, withReconciling } from "./status.ts";
import { unknownFields } from "./unknown-fields.ts";

/*
 * Reconciles one object, in the same way for all kinds: gather, plan, apply, and repeat until no action remains. Each kind provides these
 * three steps. The operator adds its finalizer before it creates a resource for an object, and removes the finalizer when the object owns
 * no resource any more.
 */

/** Effect of an API response on the reconcile. Data of the response is not used, because the next gather reads created objects. */
export interface Applied {
  readonly refusal?: Refusal;
  /** Verdict if a system other than the API rejected the action. */
  readonly verdict?: Verdict;
}

export interface KindSteps<Observed, Action> {
  readonly gather: (object: ManifestObject, ctx: Context) => Promise<Observed>;
  readonly plan: (observed: Observed) => Plan<Action>;
  readonly apply: (action: Action, object: ManifestObject, ctx: Context) => Promise<Applied>;
  /** Called when the database matches the manifest. */
  readonly remember?: (observed: Observed, plan: Plan<Action>, ctx: Context) => void;
  /** Returns the digest of the stored object at the time of its read or earlier; `undefined` if unknown (drift/synced-objects.ts). */
  readonly digestOf?: (observed: Observed) => string | undefined;
  /**
   * Returns the additional conditions if the new generation cannot be applied, because of a failed check or an API refusal. `observed` is
   * `undefined` if the database was not read.
   */
  readonly held?: (verdict: Verdict, observed?: Observed) => readonly FurtherCondition[];
  /** Describes an action for the Event about drift. */
  readonly describe: (action: Action) => string;
}

/** Maximum number of passes. Creating, changing and checking take three; more passes mean that another writer is active. */
const PASSES_MAX = 6;
const BUSY_REQUEUE_MS = 1_000;

export async function reconcileObject<Observed, Action>(
  kind: Kind,
  steps: KindSteps<Observed, Action>,
  key: ObjectKey,
  ctx: OperatorContext,
): Promise<WorkResult> {
  let drift: string | undefined;
  for (let pass = 1; pass <= PASSES_MAX; pass++) {
    const object = ctx.source.get(kind, key);
    if (object === undefined) return {};
    const isDeleting = object.metadata.deletionTimestamp !== undefined;
    const isOurs = storeFinalizersOf(object).length > 0;
    if (isDeleting && !isOurs) return {};
    if (isDeleting && object.metadata.annotations[ABANDON_ANNOTATION] === "true") return await abandon(object, ctx);
    const admission = admit(object, ctx);
    if (admission.verdict !== undefined) {
      const conditions = steps.held?.(admission.verdict) ?? [];
      return await conclude(object, { ...blocked(admission.verdict, ownStatus(object)), conditions }, ctx);
    }
    const { workspace, inWorkspace } = admission;
    const synced = object.metadata.finalizers.includes(finalizerOf(workspace))
      ? ctx.synced.recall(object, ctx.nowMs())
      : undefined;
    if (synced !== undefined) return await conclude(object, { ...synced.plan, seenAtMs: synced.seenAtMs }, ctx);
    const number = ctx.synced.begin(object);
    const seenAtMs = ctx.nowMs();
    try {
      const observed = await steps.gather(object, inWorkspace);
      const plan = steps.plan(observed);
      if (plan.released) return await letGo(object, ctx);
      const hasCounterpart = plan.actions.length > 0 || plan.verdict.state === "Ready";
      if (hasCounterpart && !isDeleting && !object.metadata.finalizers.includes(finalizerOf(workspace))) {
        await ctx.workspaces.confirm(object.metadata.namespace);
        const confirmed = admit(object, ctx);
        if (confirmed.workspace?.name !== workspace.name || confirmed.verdict !== undefined) continue;
        // Sets the finalizer before a resource is created for the object. The plan stays valid, because this changes only the cached
        // object.
        await ctx.source.setFinalizers(object, [...foreignFinalizersOf(object), finalizerOf(workspace)]);
      }
      if (plan.actions.length === 0) {
        if (plan.verdict.state === "Ready") {
          steps.remember?.(observed, plan, inWorkspace);
          const digest = steps.digestOf?.(observed);
          if (digest !== undefined) ctx.synced.settle({ object, plan, digest, seenAtMs }, number);
        }
        return await conclude(object, plan, ctx, drift);
      }
      if (pass === 1 && !isDeleting && !plan.isDue && wasReady(object))
        drift = plan.actions.map(steps.describe).join("; ");
      const verdict = await applyAll(steps, plan.actions, object, inWorkspace);
      if (verdict !== undefined) {
        const conditions = plan.conditions ?? steps.held?.(verdict, observed) ?? [];
        return await conclude(object, { ...plan, verdict, conditions, requeueAfterMs: CONFLICT_REQUEUE_MS }, ctx);
      }
    } catch (error) {
      if (error instanceof ApiUnavailable) await reportUnavailable(steps, object, error, ctx);
      throw error;
    }
  }
  return { requeueAfterMs: BUSY_REQUEUE_MS };
}

/** Applies the actions until one of them is refused permanently, and returns the resulting verdict. */
async function applyAll<Observed, Action>(
  steps: KindSteps<Observed, Action>,
  actions: readonly Action[],
  object: ManifestObject,
  ctx: Context,
): Promise<Verdict | undefined> {
  for (const action of actions) {
    const applied = await steps.apply(action, object, ctx);
    if (applied.verdict !== undefined) return applied.verdict;
    if (applied.refusal !== undefined) {
      const detail = withoutForeignManagers(applied.refusal.detail, managerOf(ctx, object));
      const verdict = verdictOn({ ...applied.refusal, detail }, object);
      // The refusal is temporary. For example, an object was deleted after gathering, and the next pass makes another plan.
      if (verdict === undefined) throw new Error(`${steps.describe(action)}: ${applied.refusal.detail}`);
      return verdict;
    }
    ctx.log.info({ object: labelOf(object), generation: object.metadata.generation }, steps.describe(action));
  }
  return undefined;
}

/** Returns the verdict for a refusal that a retry does not resolve; `undefined` for any other refusal. */
function verdictOn({ kind, detail, faults = [] }: Refusal, object: ManifestObject): Verdict | undefined {
  switch (kind) {
    case "managed_by_manifest":
    case "managed_exists":
    case "role_already_exists":
    case "ratelimit_namespace_already_exists":
      return stalled("Conflict", detail);
    case "invalid_input":
      return stalled("InvalidSpec", `The API rejects the manifest: ${detail}${describeFaults(faults)}`);
    case "role_not_found":
      return progressing("DependencyNotReady", detail);
    case "protected_resource":
      return stalled("DeleteProtected", `${detail} ${wayOut(object)}`);
    default:
      return undefined;
  }
}

const wayOut = ({ kind, metadata: { namespace, name } }: ManifestObject): string =>
  `To delete the object without cleaning up its stored objects: kubectl -n ${namespace} annotate ${kind.toLowerCase()}.postern.dev ${name} ${ABANDON_ANNOTATION}=true`;

const FAULTS_SHOWN_MAX = 5;

/** Describes the invalid fields with their locations, and the remedy if the api-server has an older version than this operator. */
function describeFaults(faults: readonly FieldProblem[]): string {
  if (faults.length === 0) return "";
  const shown = faults.slice(0, FAULTS_SHOWN_MAX).map(({ location, message }) => `${location} ${message}`);
  const more = faults.length > FAULTS_SHOWN_MAX ? ` (and ${faults.length - FAULTS_SHOWN_MAX} more)` : "";
  return ` ${shown.join("; ")}${more}. ${faults.some(isOfLaterRelease) ? OLDER_API : ""}`.trimEnd();
}

const isOfLaterRelease = ({ location, message }: FieldProblem): boolean =>
  message === "is not a known field" || location.endsWith(".formatVersion");

const OLDER_API =
  "The api-server has an older release than this operator: upgrade the api-servers first (docs/upgrades.md).";

async function conclude<Action>(
  object: ManifestObject,
  plan: Plan<Action>,
  ctx: OperatorContext,
  drift?: string,
): Promise<WorkResult> {
  // The object may have changed in the meantime, but its status must describe the reconciled generation.
  const now = current(object, ctx);
  const unknown = unknownFields(now, conditionsOf(now));
  const { status, events } = statusOf({
    object: now,
    verdict: plan.verdict,
    conditions: [...(plan.conditions ?? []), ...(unknown === undefined ? [] : [unknown])],
    own: plan.status,
    nowMs: ctx.nowMs(),
  });
  if (plan.verdict.state === "Ready") ctx.syncs.note(object, plan.seenAtMs ?? ctx.nowMs());
  if (status !== undefined) await ctx.source.updateStatus(object, status);
  for (const event of events) await ctx.source.recordEvent(object, event);
  if (drift !== undefined) {
    const note = `The stored state differed from the manifest and was corrected: ${drift}.`;
    await ctx.source.recordEvent(object, { type: "Warning", reason: "DriftCorrected", action: "Correct", note });
  }
  const isCompetitor = plan.verdict.reason === "Conflict";
  return {
    requeueAfterMs: isCompetitor ? laterWhileHeld(plan.requeueAfterMs, heldForMs(now, ctx)) : plan.requeueAfterMs,
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

async function reportUnavailable<Observed, Action>(
  steps: KindSteps<Observed, Action>,
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
  if (!keepReady) {
    const own = ownStatus(object);
    const { status } = statusOf({
      object,
      verdict,
      conditions: steps.held?.(verdict) ?? [],
      own,
      nowMs: ctx.nowMs(),
    });
    if (status !== undefined) await ctx.source.updateStatus(object, status);
    return;
  }
  const status = withReconciling(object, verdict, ctx.nowMs());
  if (status !== undefined) await ctx.source.updateStatus(object, status);
}

/** Returns the status fields specific to the kind, especially ids, which must be preserved while the API is unreachable. */
function ownStatus({ status }: ManifestObject): object {
  const { conditions: _, observedGeneration: __, ...own } = (status ?? {}) as Record<string, unknown>;
  return own;
}
