import { RatelimitNamespaceSpec } from "../../core/manifests/ratelimit-namespace.ts";
import type { ManifestObject } from "../source/contract.ts";
import { claimantsOf, reservedFor } from "./claims.ts";
import { type Context, managedBy, managerOf } from "./context.ts";
import { labelFor, labelOf, managerFor } from "./names-in-messages.ts";
import { progressing, type ResolvedNamespace, stalled, type Verdict } from "./plan.ts";
import { findNamespace } from "./ratelimit-namespace/gather.ts";
import { mayRefer } from "./spec.ts";
import { findOwned } from "./stored.ts";

/*
 * Resolves references to rate-limit namespaces. The database determines which namespace an object manages, because the object's own
 * contents (status, annotations, a name that others share) are not trusted.
 */

/** Resolves a RatelimitNamespace object; `from` is the Kubernetes namespace of the referring object. */
export async function resolveNamespace(
  target: ManifestObject,
  from: string,
  ctx: Pick<Context, "api" | "cluster">,
): Promise<ResolvedNamespace> {
  const refused = refusalOf(target, from);
  if (refused !== undefined) return { verdict: refused };
  const owned = await findOwned(ctx.api, "namespace", managerOf(ctx, target));
  if (owned !== undefined) return { namespaceId: owned.id };
  return { verdict: progressing("DependencyNotReady", `${labelOf(target)} is not ready yet.`) };
}

/** Resolves a stored name to a namespace that was created through the API, or whose managing object allows the reference. */
export async function resolveNamespaceByName(
  name: string,
  from: string,
  ctx: Pick<Context, "api" | "cluster" | "source">,
): Promise<ResolvedNamespace> {
  const stored = await findNamespace(name, ctx);
  // The lookup prefers ids to names. If the name of one namespace is the id of another one, it finds the other one.
  if (stored === undefined || stored.name !== name) return { verdict: notThere(name, from, ctx) };
  const { namespaceId, manager } = stored;
  if (manager === undefined) {
    const reserved = reservedFor(stored, `${ctx.cluster}//${from}/`);
    return reserved === undefined
      ? { namespaceId }
      : {
          verdict: stalled(
            "NotAllowed",
            `The rate-limit namespace ${name} does not belong to this namespace. ${reserved}`,
          ),
        };
  }
  const target = managedBy(ctx, "RatelimitNamespace", manager);
  if (target === undefined) {
    const message = `The rate-limit namespace ${name} is managed by ${managerFor(manager, `${ctx.cluster}//${from}/`)}, whose allowedNamespaces this operator cannot read.`;
    return { verdict: stalled("NotAllowed", message) };
  }
  const refused = refusalOf(target, from);
  return refused === undefined ? { namespaceId } : { verdict: refused };
}

/** Returns whether an object of the Kubernetes namespace `from` may refer to this RatelimitNamespace. */
export const mayReferTo = (target: ManifestObject, from: string): boolean =>
  mayRefer(RatelimitNamespaceSpec, target, from);

/** Returns the reason why objects of the Kubernetes namespace `from` cannot use this namespace now; `undefined` if they can. Pure. */
export function refusalOf(target: ManifestObject, from: string): Verdict | undefined {
  if (!mayReferTo(target, from)) {
    const message = `${labelFor(target, from)} does not allow objects of the namespace ${from} to refer to it. Add ${from} to its spec.allowedNamespaces.`;
    return stalled("NotAllowed", message);
  }
  if (target.metadata.deletionTimestamp === undefined) return undefined;
  return progressing("DependencyNotReady", `${labelFor(target, from)} is being deleted.`);
}

function notThere(name: string, from: string, { source }: Pick<Context, "source">): Verdict {
  const claimant = claimantsOf("RatelimitNamespace", [name], source).find((object) => mayReferTo(object, from));
  const message =
    claimant === undefined
      ? `The rate-limit namespace ${name} does not exist. Create a RatelimitNamespace with this spec.name, or correct the rule.`
      : `${labelFor(claimant, from)} is not ready yet.`;
  return progressing("DependencyNotReady", message);
}
