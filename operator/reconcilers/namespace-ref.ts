import { RatelimitNamespaceSpec } from "../../core/manifests/ratelimit-namespace.ts";
import type { ManifestObject } from "../source/contract.ts";
import { claimantsOf } from "./claims.ts";
import { type Context, managerOf } from "./context.ts";
import { labelFor } from "./names-in-messages.ts";
import { progressing, stalled, type Verdict } from "./plan.ts";
import { mayRefer } from "./spec.ts";

/*
 * Checks references to RatelimitNamespaces, as far as this needs only the manifests. The API checks which manifest manages the stored
 * namespace.
 */

/** Returns whether an object of the Kubernetes namespace `from` may refer to this RatelimitNamespace. */
export const mayReferTo = (target: ManifestObject, from: string): boolean =>
  mayRefer(RatelimitNamespaceSpec, target, from);

/** Returns the reason why objects of the Kubernetes namespace `from` cannot use this namespace now; `undefined` if they can. Pure. */
export function refusalOf(target: ManifestObject, from: string): Verdict | undefined {
  if (!mayReferTo(target, from)) {
    const message = `${labelFor(target, from)} does not allow objects of the namespace ${from} to refer to it. Add ${from} to its spec.allowedNamespaces.`;
    return stalled("NotAllowed", message);
  }
  return deletionOf(target, from);
}

const deletionOf = (target: ManifestObject, from: string): Verdict | undefined =>
  target.metadata.deletionTimestamp === undefined
    ? undefined
    : progressing("DependencyNotReady", `${labelFor(target, from)} is being deleted.`);

/**
 * Resolves references by stored name.
 * @returns the managers of other Kubernetes namespaces whose RatelimitNamespaces allow the reference, or the verdict if one of them is being
 * deleted.
 */
export function referToNames(
  names: readonly string[],
  from: string,
  ctx: Pick<Context, "cluster" | "source">,
): { readonly managers: readonly string[]; readonly verdict?: Verdict | undefined } {
  const allowed = claimantsOf("RatelimitNamespace", names, ctx.source).filter((target) => mayReferTo(target, from));
  const verdict = allowed.map((target) => deletionOf(target, from)).find((one) => one !== undefined);
  const foreign = allowed.filter(({ metadata }) => metadata.namespace !== from);
  return { managers: foreign.map((target) => managerOf(ctx, target)), verdict };
}
