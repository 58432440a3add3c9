import { RatelimitNamespaceSpec, RatelimitNamespaceStatus } from "../../core/manifests/ratelimit-namespace.ts";
import type { ManifestObject } from "../source/contract.ts";
import { labelOf } from "./claims.ts";
import { progressing, stalled, type Verdict } from "./plan.ts";
import { parseStatus } from "./spec.ts";

/** What an object that refers to a RatelimitNamespace can know of it: the store's id, or why not yet. */
export type ResolvedNamespace = { readonly namespaceId: string } | { readonly verdict: Verdict };

/** Pure: `from` is the Kubernetes namespace of the object that refers to it. */
export function resolveNamespace(target: ManifestObject, from: string): ResolvedNamespace {
  if (!mayRefer(target, from)) {
    const message = `${labelOf(target)} does not allow objects of the namespace ${from} to refer to it. Add ${from} to its spec.allowedNamespaces.`;
    return { verdict: stalled("NotAllowed", message) };
  }
  const { namespaceId, conditions = [] } = parseStatus(RatelimitNamespaceStatus, target);
  if (target.metadata.deletionTimestamp !== undefined) {
    return { verdict: progressing("DependencyNotReady", `${labelOf(target)} is being deleted.`) };
  }
  if (namespaceId === undefined) {
    const why = conditions.find(({ type }) => type === "Ready")?.reason;
    const message = `${labelOf(target)} is not ready yet${why === undefined ? "" : ` (${why})`}.`;
    return { verdict: progressing("DependencyNotReady", message) };
  }
  return { namespaceId };
}

/** Objects of the same Kubernetes namespace always may. */
function mayRefer({ metadata, spec }: ManifestObject, from: string): boolean {
  if (metadata.namespace === from) return true;
  const parsed = RatelimitNamespaceSpec.safeParse(spec);
  return parsed.success && parsed.data.allowedNamespaces.includes(from);
}
