import type { ObjectKey } from "../../runtime/object-key.ts";
import type { WorkResult } from "../../runtime/queue.ts";
import { keyOf, type ManifestChange } from "../../source/contract.ts";
import type { Context } from "../context.ts";
import { type KindSteps, reconcileObject } from "../reconcile-object.ts";
import { apply, describe } from "./apply.ts";
import { foldedName, gather, type ObservedRole } from "./gather.ts";
import { planRole, type RoleAction } from "./plan.ts";

const steps: KindSteps<ObservedRole, RoleAction> = { kind: "Role", gather, plan: planRole, apply, describe };

export const reconcileRole = (key: ObjectKey, ctx: Context): Promise<WorkResult> => reconcileObject(steps, key, ctx);

/** Objects whose claim is won or lost by the change of another one. */
export function rolesConcernedBy(change: ManifestChange, { source }: Pick<Context, "source">): ObjectKey[] {
  if (change.kind !== "Role") return [];
  const names = new Set([foldedName(change.before?.spec), foldedName(change.after?.spec)]);
  return source
    .list("Role")
    .filter(({ spec }) => foldedName(spec) !== undefined && names.has(foldedName(spec)))
    .map(keyOf);
}
