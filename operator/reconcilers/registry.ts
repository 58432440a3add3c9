import type { Kind } from "../../core/manifests/index.ts";
import type { ObjectKey } from "../runtime/object-key.ts";
import type { WorkResult } from "../runtime/queue.ts";
import { keyOf, type ManifestChange, type ManifestObject, versionsOf } from "../source/contract.ts";
import { applyApiKey, describeApiKey } from "./api-key/apply.ts";
import { apiKeysConcernedBy } from "./api-key/concerned.ts";
import { gatherApiKey } from "./api-key/gather.ts";
import { planApiKey } from "./api-key/plan.ts";
import { applyPolicy, describePolicy } from "./api-key-policy/apply.ts";
import { policiesConcernedBy } from "./api-key-policy/concerned.ts";
import { gatherPolicy } from "./api-key-policy/gather.ts";
import { heldConditions } from "./api-key-policy/held.ts";
import { planPolicy } from "./api-key-policy/plan.ts";
import { claimantsOf, claimOf } from "./claims.ts";
import type { OperatorContext } from "./context.ts";
import { type ObjectLookup, toObject } from "./indexes.ts";
import { applyNamespace, describeNamespace } from "./ratelimit-namespace/apply.ts";
import { gatherNamespace } from "./ratelimit-namespace/gather.ts";
import { planNamespace } from "./ratelimit-namespace/plan.ts";
import { applyOverride, describeOverride } from "./ratelimit-override/apply.ts";
import { gatherOverride } from "./ratelimit-override/gather.ts";
import { planOverride } from "./ratelimit-override/plan.ts";
import { type KindSteps, reconcileObject } from "./reconcile-object.ts";
import { applyRole, describeRole } from "./role/apply.ts";
import { gatherRole } from "./role/gather.ts";
import { planRole } from "./role/plan.ts";

/* Steps of each kind of manifest. This file lists how each kind gathers, plans and applies, and reconcile-object.ts runs these steps. */

export interface Reconciler<K extends Kind = Kind> {
  readonly kind: K;
  readonly reconcile: (key: ObjectKey, ctx: OperatorContext) => Promise<WorkResult>;
  /** Returns objects of this kind, except the changed one, whose state may depend on a change. */
  readonly concernedBy: (change: ManifestChange, source: ObjectLookup) => readonly ObjectKey[];
}

const REGISTRY: { readonly [K in Kind]: Reconciler<K> } = {
  Role: register("Role", {
    gather: gatherRole,
    plan: planRole,
    apply: applyRole,
    describe: describeRole,
    digestOf: ({ digest }) => digest,
  }),
  RatelimitNamespace: register("RatelimitNamespace", {
    gather: gatherNamespace,
    plan: planNamespace,
    apply: applyNamespace,
    describe: describeNamespace,
    digestOf: ({ digest }) => digest,
  }),
  RatelimitOverride: register("RatelimitOverride", {
    gather: gatherOverride,
    plan: planOverride,
    apply: applyOverride,
    describe: describeOverride,
    digestOf: ({ digest }) => digest,
    concernedBy: overridesConcernedBy,
  }),
  ApiKeyPolicy: register("ApiKeyPolicy", {
    gather: gatherPolicy,
    plan: planPolicy,
    apply: applyPolicy,
    describe: describePolicy,
    held: heldConditions,
    remember: (observed, { pace }, { looks }) => looks.remember({ observed, pace }),
    concernedBy: policiesConcernedBy,
  }),
  ApiKey: register("ApiKey", {
    gather: gatherApiKey,
    plan: planApiKey,
    apply: applyApiKey,
    describe: describeApiKey,
    concernedBy: apiKeysConcernedBy,
  }),
};

export const RECONCILERS: readonly Reconciler[] = Object.values(REGISTRY);

interface Registered<Observed, Action> extends KindSteps<Observed, Action> {
  /** Returns objects that a change affects, except those that gain or lose a claim. */
  readonly concernedBy?: (change: ManifestChange, source: ObjectLookup) => readonly ManifestObject[];
}

function register<K extends Kind, Observed, Action>(kind: K, steps: Registered<Observed, Action>): Reconciler<K> {
  return {
    kind,
    reconcile: (key, ctx) => reconcileObject(kind, steps, key, ctx),
    concernedBy: (change, source) => {
      const competitors =
        change.kind === kind && concernsCompetitors(change)
          ? claimantsOf(kind, versionsOf(change).map(claimOf), source)
          : [];
      return [...new Set([...competitors, ...(steps.concernedBy?.(change, source) ?? [])])].map(keyOf);
    },
  };
}

/** Returns whether a change concerns the object itself: false if only its status or the operator's finalizer has changed. */
export function concernsItself({ before, after }: ManifestChange): boolean {
  if (before === undefined || after === undefined) return true;
  return text(before) !== text(after);
}

/**
 * Returns whether a change may affect the owner of a claim. A change of finalizers may affect it, but a change of the status never does.
 */
const concernsCompetitors = (change: ManifestChange): boolean =>
  concernsItself(change) || finalizersOf(change.before) !== finalizersOf(change.after);

const finalizersOf = (object: ManifestObject | undefined): string => JSON.stringify(object?.metadata.finalizers);

const text = ({ metadata }: ManifestObject): string => {
  const { uid, generation, deletionTimestamp, annotations } = metadata;
  return JSON.stringify([uid, generation, deletionTimestamp, annotations]);
};

/** Returns the overrides of a RatelimitNamespace that was created, deleted or changed. */
function overridesConcernedBy(change: ManifestChange, source: ObjectLookup): readonly ManifestObject[] {
  const object = change.after ?? change.before;
  if (change.kind !== "RatelimitNamespace" || object === undefined) return [];
  return source.having("RatelimitOverride", "reference", toObject("RatelimitNamespace", keyOf(object)));
}
