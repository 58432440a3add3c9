import { isDeepStrictEqual } from "node:util";
import { isKubeError } from "../../runtime/kube-client.ts";
import type { ManifestObject } from "../../source/contract.ts";
import { type Context, managementOf } from "../context.ts";
import { labelOf } from "../names-in-messages.ts";
import { stalled } from "../plan.ts";
import type { Applied } from "../reconcile-object.ts";
import type { NetworkAction } from "./network.ts";
import type { PolicyAction } from "./plan.ts";

export async function applyPolicy(action: PolicyAction, object: ManifestObject, ctx: Context): Promise<Applied> {
  const { api } = ctx;
  const management = managementOf(ctx, object);
  switch (action.type) {
    case "writeNetworkPolicy":
    case "deleteNetworkPolicy":
    case "orphanNetworkPolicy":
      return await applyToNetwork(action, object, ctx);
  }
  ctx.looks.forget(object.metadata);
  switch (action.type) {
    case "createApi":
      return await api.call("apis.createApi", { name: action.name }, management);
    case "adoptApi":
    case "renameApi": {
      const { type, apiId, name } = action;
      return await api.call("apis.updateApi", { apiId, name }, { ...management, adopt: type === "adoptApi" });
    }
    case "setPolicy": {
      const { type: _, policy, ...body } = action;
      // Only this object can have orphaned an unmanaged policy of this name, because the name is reserved for it.
      return await api.call("policies.setPolicy", { ...body, policy }, { ...management, adopt: true });
    }
    case "deletePolicy":
      return await api.call("policies.deletePolicy", { policyId: action.policyId }, management);
    case "deleteApi":
    case "releaseApi": {
      const release = action.type === "releaseApi";
      return await api.call("apis.deleteApi", { apiId: action.apiId }, { ...management, release });
    }
  }
}

async function applyToNetwork(
  action: NetworkAction,
  object: ManifestObject,
  { network, source, log }: Context,
): Promise<Applied> {
  if (network === undefined) return {};
  try {
    if (action.type === "deleteNetworkPolicy") {
      await network.remove(action.found);
      return {};
    }
    if (action.type === "orphanNetworkPolicy") {
      await network.orphan(action.found, action.pods);
      return {};
    }
    // The desired spec is unchanged, so another writer has changed the NetworkPolicy. An operator that has just started cannot detect such
    // a change.
    const isDrift = isDeepStrictEqual(network.lastWritten(object), action.spec);
    await network.apply(object, action, action.found);
    if (isDrift) {
      const note = `The NetworkPolicy ${action.name} was ${action.found === undefined ? "deleted" : "edited"} and has been restored.`;
      await source.recordEvent(object, { type: "Warning", reason: "DriftCorrected", action: "Correct", note });
    }
    return {};
  } catch (error) {
    // Status 422 occurs, for example, if an admission policy of the cluster rejects the name.
    if (!isKubeError(error, 403) && !isKubeError(error, 422)) throw error;
    log.warn({ object: labelOf(object), err: error }, "NetworkPolicy cannot be changed; the policy is Stalled");
    return { verdict: stalled("Forbidden", `The NetworkPolicy cannot be changed: ${error.message}`) };
  }
}

export function describePolicy(action: PolicyAction): string {
  switch (action.type) {
    case "createApi":
      return `create the API ${action.name}`;
    case "adoptApi":
      return `adopt the API ${action.apiId}`;
    case "renameApi":
      return `rename the API ${action.apiId} to ${action.name}`;
    case "setPolicy":
      return `set the policy of the API ${action.apiId}, ${action.policy.rules.length} rules`;
    case "deletePolicy":
      return `delete the policy ${action.policyId}`;
    case "deleteApi":
      return `delete the API ${action.apiId}`;
    case "releaseApi":
      return `release the API ${action.apiId}`;
    case "writeNetworkPolicy":
      return `write the NetworkPolicy ${action.name}`;
    case "deleteNetworkPolicy":
      return `delete the NetworkPolicy ${action.found.name}`;
    case "orphanNetworkPolicy":
      return `leave the NetworkPolicy ${action.found.name} to ${action.pods.length} pods`;
  }
}
