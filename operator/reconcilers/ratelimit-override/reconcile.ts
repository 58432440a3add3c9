import { formatKey, type ObjectKey } from "../../runtime/object-key.ts";
import type { WorkResult } from "../../runtime/queue.ts";
import { keyOf, type ManifestChange } from "../../source/contract.ts";
import type { Context } from "../context.ts";
import { type KindSteps, reconcileObject } from "../reconcile-object.ts";
import { apply, describe } from "./apply.ts";
import { claimOf, gather, namespaceRefOf, type ObservedOverride } from "./gather.ts";
import { type OverrideAction, planOverride } from "./plan.ts";

const steps: KindSteps<ObservedOverride, OverrideAction> = {
  kind: "RatelimitOverride",
  gather,
  plan: planOverride,
  apply,
  describe,
};

export const reconcileOverride = (key: ObjectKey, ctx: Context): Promise<WorkResult> =>
  reconcileObject(steps, key, ctx);

/** Overrides of a RatelimitNamespace that came, went or changed, and those that claim what another override had. */
export function overridesConcernedBy(change: ManifestChange, { source }: Pick<Context, "source">): ObjectKey[] {
  const object = change.after ?? change.before;
  if (object === undefined) return [];
  const overrides = source.list("RatelimitOverride");
  if (change.kind === "RatelimitNamespace") {
    const changed = formatKey(keyOf(object));
    return overrides.filter((override) => refersTo(override, changed)).map(keyOf);
  }
  if (change.kind !== "RatelimitOverride") return [];
  const claims = new Set([change.before, change.after].flatMap((one) => (one === undefined ? [] : [claimText(one)])));
  return overrides.filter((override) => claims.has(claimText(override))).map(keyOf);
}

function refersTo(override: Parameters<typeof namespaceRefOf>[0], key: string): boolean {
  const ref = namespaceRefOf(override);
  return ref !== undefined && formatKey(ref) === key;
}

const claimText = (object: Parameters<typeof claimOf>[0]): string | undefined => JSON.stringify(claimOf(object));
