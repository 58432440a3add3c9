import type { ManifestObject } from "../../source/contract.ts";
import { type Context, managementOf } from "../context.ts";
import type { Applied } from "../reconcile-object.ts";
import type { NamespaceAction } from "./plan.ts";

export async function applyNamespace(action: NamespaceAction, object: ManifestObject, ctx: Context): Promise<Applied> {
  const { api } = ctx;
  switch (action.type) {
    case "create":
    case "adopt": {
      const management = managementOf(ctx, object, { adopt: action.type === "adopt" });
      return await api.call("ratelimit.createNamespace", { name: action.name }, management);
    }
    case "delete":
    case "release": {
      const management = managementOf(ctx, object, { release: action.type === "release" });
      return await api.call("ratelimit.deleteNamespace", { namespace: action.namespaceId }, management);
    }
  }
}

export function describeNamespace(action: NamespaceAction): string {
  const which = "name" in action ? action.name : action.namespaceId;
  return `${action.type} the rate-limit namespace ${which}`;
}
