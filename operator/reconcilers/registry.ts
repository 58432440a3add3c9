import type { Kind } from "../../core/manifests/index.ts";
import type { ObjectKey } from "../runtime/object-key.ts";
import type { WorkResult } from "../runtime/queue.ts";
import { keyOf, type ManifestChange, type ManifestObject, versionsOf } from "../source/contract.ts";
import { apiKeysConcernedBy } from "./api-key/concerned.ts";
import { apiKeySteps } from "./api-key/reconcile.ts";
import { policiesConcernedBy } from "./api-key-policy/concerned.ts";
import { policySteps } from "./api-key-policy/reconcile.ts";
import { claimantsOf, claimOf } from "./claims.ts";
import type { OperatorContext } from "./context.ts";
import { type ObjectLookup, toObject } from "./indexes.ts";
import { type KindSteps, reconcileObject } from "./reconcile-object.ts";
import { stepsOf } from "./stored-kinds.ts";

/* Defines, for each kind of manifest, the steps that reconcile-object.ts runs and the objects that a change affects. */

export interface Reconciler<K extends Kind = Kind> {
  readonly kind: K;
  readonly reconcile: (key: ObjectKey, ctx: OperatorContext) => Promise<WorkResult>;
  /** Returns the other objects of this kind whose state may depend on a change. */
  readonly concernedBy: (change: ManifestChange, source: ObjectLookup) => readonly ObjectKey[];
}

const REGISTRY: { readonly [K in Kind]: Reconciler<K> } = {
  Role: register("Role", stepsOf("Role")),
  RatelimitNamespace: register("RatelimitNamespace", stepsOf("RatelimitNamespace")),
  RatelimitOverride: register("RatelimitOverride", stepsOf("RatelimitOverride"), overridesConcernedBy),
  ApiKeyPolicy: register("ApiKeyPolicy", policySteps, policiesConcernedBy),
  ApiKey: register("ApiKey", apiKeySteps, apiKeysConcernedBy),
};

export const RECONCILERS: readonly Reconciler[] = Object.values(REGISTRY);

/** @param concerned returns the objects that a change affects, in addition to those that gain or lose a claim. */
function register<K extends Kind>(
  kind: K,
  steps: KindSteps,
  concerned?: (change: ManifestChange, source: ObjectLookup) => readonly ManifestObject[],
): Reconciler<K> {
  return {
    kind,
    reconcile: (key, ctx) => reconcileObject(kind, steps, key, ctx),
    concernedBy: (change, source) => {
      const competitors =
        change.kind === kind && concernsCompetitors(change)
          ? claimantsOf(kind, versionsOf(change).map(claimOf), source)
          : [];
      return [...new Set([...competitors, ...(concerned?.(change, source) ?? [])])].map(keyOf);
    },
  };
}

/** Returns whether a change concerns the object itself. A change does not if it affects only the status or the operator's finalizer. */
export function concernsItself({ before, after }: ManifestChange): boolean {
  if (before === undefined || after === undefined) return true;
  return text(before) !== text(after);
}

/** Returns whether a change may affect who owns a claim. A change of the finalizers may; a change of the status never does. */
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
