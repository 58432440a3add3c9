import type { Kind } from "../../core/manifests/index.ts";
import type { ObjectKey } from "../runtime/object-key.ts";
import type { WorkResult } from "../runtime/queue.ts";
import type { ManifestChange, ManifestObject } from "../source/contract.ts";
import { policiesConcernedBy, reconcilePolicy } from "./api-key-policy/reconcile.ts";
import type { Context } from "./context.ts";
import { namespacesConcernedBy, reconcileNamespace } from "./ratelimit-namespace/reconcile.ts";
import { overridesConcernedBy, reconcileOverride } from "./ratelimit-override/reconcile.ts";
import { reconcileRole, rolesConcernedBy } from "./role/reconcile.ts";

export interface Reconciler {
  readonly kind: Kind;
  readonly reconcile: (key: ObjectKey, ctx: Context) => Promise<WorkResult>;
  /** Objects of this kind, other than the changed one itself, whose state may follow from a change. */
  readonly concernedBy: (change: ManifestChange, ctx: Pick<Context, "source">) => ObjectKey[];
}

export const RECONCILERS: readonly Reconciler[] = [
  { kind: "Role", reconcile: reconcileRole, concernedBy: rolesConcernedBy },
  { kind: "RatelimitNamespace", reconcile: reconcileNamespace, concernedBy: namespacesConcernedBy },
  { kind: "RatelimitOverride", reconcile: reconcileOverride, concernedBy: overridesConcernedBy },
  { kind: "ApiKeyPolicy", reconcile: reconcilePolicy, concernedBy: policiesConcernedBy },
];

/** False when nothing changed but what we write ourselves: a status, or our finalizer. */
export function concernsItself({ before, after }: ManifestChange): boolean {
  if (before === undefined || after === undefined) return true;
  return text(before) !== text(after);
}

const text = ({ metadata }: ManifestObject): string => {
  const { uid, generation, deletionTimestamp, annotations } = metadata;
  return JSON.stringify([uid, generation, deletionTimestamp, annotations]);
};
