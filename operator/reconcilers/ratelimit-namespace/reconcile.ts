import type { ObjectKey } from "../../runtime/object-key.ts";
import type { WorkResult } from "../../runtime/queue.ts";
import { keyOf, type ManifestChange } from "../../source/contract.ts";
import type { Context } from "../context.ts";
import { type KindSteps, reconcileObject } from "../reconcile-object.ts";
import { apply, describe } from "./apply.ts";
import { gather, nameIn, type ObservedNamespace } from "./gather.ts";
import { type NamespaceAction, planNamespace } from "./plan.ts";

const steps: KindSteps<ObservedNamespace, NamespaceAction> = {
  kind: "RatelimitNamespace",
  gather,
  plan: planNamespace,
  apply,
  describe,
};

export const reconcileNamespace = (key: ObjectKey, ctx: Context): Promise<WorkResult> =>
  reconcileObject(steps, key, ctx);

/** Objects whose claim is won or lost by the change of another one. */
export function namespacesConcernedBy(change: ManifestChange, { source }: Pick<Context, "source">): ObjectKey[] {
  if (change.kind !== "RatelimitNamespace") return [];
  const names = new Set([nameIn(change.before?.spec), nameIn(change.after?.spec)]);
  return source
    .list("RatelimitNamespace")
    .filter(({ spec }) => nameIn(spec) !== undefined && names.has(nameIn(spec)))
    .map(keyOf);
}
