import type { ManifestObject } from "../../source/contract.ts";
import { type Context, managementOf } from "../context.ts";
import type { Applied } from "../reconcile-object.ts";
import type { OverrideAction } from "./plan.ts";

export async function applyOverride(action: OverrideAction, object: ManifestObject, ctx: Context): Promise<Applied> {
  const { namespaceId: namespace, identifier } = action;
  if (action.type === "set") {
    const body = { namespace, identifier, limit: action.limit, duration: action.durationMs, async: action.async };
    return await ctx.api.call(
      "ratelimit.setOverride",
      body,
      managementOf(ctx, object, { adopt: action.adopt === true }),
    );
  }
  const management = managementOf(ctx, object, { release: action.type === "release" });
  return await ctx.api.call("ratelimit.deleteOverride", { namespace, identifier }, management);
}

export function describeOverride(action: OverrideAction): string {
  if (action.type !== "set") return `${action.type} the override for ${action.identifier}`;
  return `set the override for ${action.identifier} to ${action.limit} in ${action.durationMs} ms`;
}
