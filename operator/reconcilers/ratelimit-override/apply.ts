import type { ManifestObject } from "../../source/contract.ts";
import { toApplied } from "../applied.ts";
import { type Context, managementOf } from "../context.ts";
import type { Applied } from "../reconcile-object.ts";
import type { OverrideAction } from "./plan.ts";

export async function apply(action: OverrideAction, object: ManifestObject, ctx: Context): Promise<Applied> {
  const { namespaceId: namespace, identifier } = action;
  if (action.type === "set") {
    const body = { namespace, identifier, limit: action.limit, duration: action.durationMs, async: action.async };
    return toApplied(await ctx.api.call("ratelimit.setOverride", body, managementOf(ctx, object)));
  }
  const management = managementOf(ctx, object, { release: action.type === "release" });
  return toApplied(await ctx.api.call("ratelimit.deleteOverride", { namespace, identifier }, management));
}

export function describe(action: OverrideAction): string {
  if (action.type !== "set") return `${action.type} the override for ${action.identifier}`;
  return `set the override for ${action.identifier} to ${action.limit} in ${action.durationMs} ms`;
}
