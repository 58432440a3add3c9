import type { Fault } from "../../core/api/procedures.ts";
import type { Kind } from "../../core/manifests/index.ts";
import { ApiUnavailable, type Refusal, RootKeyRefused } from "../api/client.ts";
import type { ObjectKey } from "../runtime/object-key.ts";
import type { WorkResult } from "../runtime/queue.ts";
import { ABANDON_ANNOTATION, type ManifestObject, storeFinalizersOf } from "../source/contract.ts";
import { admit, finalizerOf } from "./admission.ts";
import { type Context, managerOf, type OperatorContext } from "./context.ts";
import { labelOf, withoutForeignManagers } from "./names-in-messages.ts";
import {
  CONFLICT_REQUEUE_MS,
  type FurtherCondition,
  heldUp,
  laterWhileHeld,
  type Plan,
  progressing,
  stalled,
  type Verdict,
} from "./plan.ts";
import { conditionsOf, statusOf, wasReady, whileUnavailable, withReconciling } from "./status.ts";
import { unknownFields } from "./unknown-fields.ts";

/*
 * One reconcile, the same for all kinds: gather, plan, apply, and repeat until there is nothing left
 * to do. Each kind brings its own gather, plan and apply. An object gets our finalizer before anything is created for it,
 * and loses it when nothing of it is left.
 */

/** What a reply of the store means for the reconcile. Created objects are found by the next gather, not from the reply. */
export interface Applied {
  readonly refusal?: Refusal;
  /** In place of a refusal by the store: what another system refuses. */
  readonly verdict?: Verdict;
}

export interface KindSteps<Observed, Action> {
  readonly gather: (object: ManifestObject, ctx: Context) => Promise<Observed>;
  readonly plan: (observed: Observed) => Plan<Action>;
  readonly apply: (action: Action, object: ManifestObject, ctx: Context) => Promise<Applied>;
  /** Called when the store has what the manifest says. */
  readonly remember?: (observed: Observed, plan: Plan<Action>, ctx: Context) => void;
  /** The digest of the store's object, as it was when or before it was read; undefined when there is none (settled.ts). */
  readonly digestOf?: (observed: Observed) => string | undefined;
  /**
   * The further conditions while the generation cannot be set, by the operator's rules or by a refusal of the store. `observed` is
   * undefined when the store was not read.
   */
  readonly held?: (verdict: Verdict, observed?: Observed) => readonly FurtherCondition[];
  /** For the Event about drift: what the action corrects. */
  readonly describe: (action: Action) => string;
}

/** Creating, changing and checking take three passes; more means that another writer is active. */
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
      return await conclude(object, { ...heldUp(admission.verdict, ownStatus(object)), conditions }, ctx);
    }
    const { workspace, inWorkspace } = admission;
    const settled = object.metadata.finalizers.includes(finalizerOf(workspace))
      ? ctx.settled.recall(object, ctx.nowMs())
      : undefined;
    if (settled !== undefined) return await conclude(object, { ...settled.plan, seenAtMs: settled.seenAtMs }, ctx);
    const look = ctx.settled.begin(object);
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
        // Before anything is created for it. The plan is still valid; only the object at hand is outdated now.
        await ctx.source.setFinalizers(object, [...foreignFinalizersOf(object), finalizerOf(workspace)]);
      }
      if (plan.actions.length === 0) {
        if (plan.verdict.state === "Ready") {
          steps.remember?.(observed, plan, inWorkspace);
          const digest = steps.digestOf?.(observed);
          if (digest !== undefined) ctx.settled.settle({ object, plan, digest, seenAtMs }, look);
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

/** Applies actions until one is refused permanently, and then returns what that means for the object. */
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
      // For example, something was deleted after gathering: the next pass plans something else.
      if (verdict === undefined) throw new Error(`${steps.describe(action)}: ${applied.refusal.detail}`);
      return verdict;
    }
    ctx.log.info({ object: labelOf(object), generation: object.metadata.generation }, steps.describe(action));
  }
  return undefined;
}

/** Refusals that a retry does not fix, by their kind. */
function verdictOn({ kind, detail, faults = [] }: Refusal, object: ManifestObject): Verdict | undefined {
  switch (kind) {
    case "managed_elsewhere":
    case "managed_exists":
    case "role_already_exists":
    case "ratelimit_namespace_already_exists":
      return stalled("Conflict", detail);
    case "invalid_input":
      return stalled("InvalidSpec", `The API refuses what the manifest asks for: ${detail}${describeFaults(faults)}`);
    case "role_not_found":
      return progressing("DependencyNotReady", detail);
    case "protected_resource":
      return stalled("DeleteProtected", `${detail} ${wayOut(object)}`);
    default:
      return undefined;
  }
}

const wayOut = ({ kind, metadata: { namespace, name } }: ManifestObject): string =>
  `To delete the object and leave what it made in the store: kubectl -n ${namespace} annotate ${kind.toLowerCase()}.postern.dev ${name} ${ABANDON_ANNOTATION}=true`;

const FAULTS_SHOWN_MAX = 5;

/** Describes faults with their locations, and what to do when the api-server is older than this operator. */
function describeFaults(faults: readonly Fault[]): string {
  if (faults.length === 0) return "";
  const shown = faults.slice(0, FAULTS_SHOWN_MAX).map(({ location, message }) => `${location} ${message}`);
  const more = faults.length > FAULTS_SHOWN_MAX ? ` (and ${faults.length - FAULTS_SHOWN_MAX} more)` : "";
  return ` ${shown.join("; ")}${more}. ${faults.some(isOfLaterRelease) ? OLDER_API : ""}`.trimEnd();
}

const isOfLaterRelease = ({ location, message }: Fault): boolean =>
  message === "is not a known field" || location.endsWith(".formatVersion");

const OLDER_API =
  "The api-server is of an older release than this operator: upgrade the api-servers first (docs/upgrades.md).";

async function conclude<Action>(
  object: ManifestObject,
  plan: Plan<Action>,
  ctx: OperatorContext,
  drift?: string,
): Promise<WorkResult> {
  // The object may have changed since: its status must describe exactly the generation that was reconciled.
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
    const note = `The store differed from the manifest and was set right: ${drift}.`;
    await ctx.source.recordEvent(object, { type: "Warning", reason: "DriftCorrected", action: "Correct", note });
  }
  const isRival = plan.verdict.reason === "Conflict";
  return { requeueAfterMs: isRival ? laterWhileHeld(plan.requeueAfterMs, heldForMs(now, ctx)) : plan.requeueAfterMs };
}

/** How long the object has been Stalled: 0 when it was not before. */
function heldForMs(object: ManifestObject, { nowMs }: Pick<OperatorContext, "nowMs">): number {
  const stalledSince = conditionsOf(object).find(({ type }) => type === "Stalled")?.lastTransitionTime;
  return stalledSince === undefined ? 0 : nowMs() - Date.parse(stalledSince);
}

/** The reconciled generation, with the newest status and finalizers. */
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
  const note = `Let go without cleaning up in the store, as ${ABANDON_ANNOTATION} asks.`;
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
    ? ` If the store is gone for good, annotate the object with ${ABANDON_ANNOTATION}=true.`
    : "";
  const { verdict, keepReady } = whileUnavailable(object, {
    message: `${error.message}; it is tried again.${hint}`,
    isKeyRefused: error instanceof RootKeyRefused,
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

/** The kind's own members of its status, above all ids, which must be kept while the API is unreachable. */
function ownStatus({ status }: ManifestObject): object {
  const { conditions: _, observedGeneration: __, ...own } = (status ?? {}) as Record<string, unknown>;
  return own;
}
