import { ApiKeyPolicySpec } from "../../../core/manifests/api-key-policy.ts";
import type { ApiResponse } from "../../api/client.ts";
import type { ManifestObject } from "../../source/contract.ts";
import { reservedFor } from "../claims.ts";
import { type Context, managedBy, managerOf } from "../context.ts";
import { labelFor, labelOf } from "../names-in-messages.ts";
import { progressing, stalled, type Verdict } from "../plan.ts";
import { apiRefIdIn, policyRefOf } from "../raw-spec.ts";
import { mayRefer } from "../spec.ts";

/** API of a key: its id, or the reason why there is none yet. */
export type ResolvedApi = { readonly apiId: string } | { readonly verdict: Verdict };

/** Resolves the API of a key. The database determines which API belongs to a policy, because the contents of objects are not trusted. */
export async function resolveApi(object: ManifestObject, ctx: Context): Promise<ResolvedApi> {
  if (object.metadata.deletionTimestamp !== undefined) return waiting("The object is being deleted.");
  const ref = policyRefOf(object);
  const named = apiRefIdIn(object);
  if (ref === undefined) {
    return named === undefined
      ? waiting("The object does not refer to an API.")
      : await resolveById(named, object, ctx);
  }
  const policy = ctx.source.get("ApiKeyPolicy", ref);
  if (policy === undefined) {
    return waiting(
      `The ApiKeyPolicy ${ref.namespace}/${ref.name} does not exist. Create it, or create an ApiKey for another one.`,
    );
  }
  const refused = refusalOf(policy, object);
  if (refused !== undefined) return { verdict: refused };
  const apiId = await apiOf(policy, ctx);
  if (apiId === undefined) return waiting(`${labelOf(policy)} is not ready yet.`);
  return await resolveById(apiId, object, ctx);
}

/** Returns the id of the API for which the policy is stored. */
const apiOf = async (policy: ManifestObject, ctx: Context): Promise<string | undefined> =>
  foundOr404(await ctx.api.call("policies.getPolicy", { manager: managerOf(ctx, policy) }))?.apiId;

async function resolveById(apiId: string, object: ManifestObject, ctx: Context): Promise<ResolvedApi> {
  const managed = foundOr404(await ctx.api.call("managed.getObject", { kind: "api", id: apiId }));
  if (managed === undefined) return waiting(`The API ${apiId} does not exist.`);
  if (managed.manager === undefined) {
    const reserved = reservedFor(managed, managerOf(ctx, object));
    return reserved === undefined
      ? { apiId }
      : { verdict: stalled("NotAllowed", `The API ${apiId} does not belong to this namespace. ${reserved}`) };
  }
  const maker = managedBy(ctx, "ApiKeyPolicy", managed.manager);
  if (maker === undefined) {
    const message = `The API ${apiId} belongs to an object of another cluster or namespace whose allowedNamespaces this operator cannot read.`;
    return { verdict: stalled("NotAllowed", message) };
  }
  const refused = refusalOf(maker, object);
  return refused === undefined ? { apiId } : { verdict: refused };
}

function refusalOf(policy: ManifestObject, { metadata: { namespace } }: ManifestObject): Verdict | undefined {
  if (!mayRefer(ApiKeyPolicySpec, policy, namespace)) {
    // The message omits the name: an author without access to the other namespace must not learn which objects it contains.
    return stalled(
      "NotAllowed",
      `The policy of this API does not allow keys of the namespace ${namespace}. Add ${namespace} to its spec.allowedNamespaces.`,
    );
  }
  if (policy.metadata.deletionTimestamp === undefined) return undefined;
  return progressing("DependencyNotReady", `${labelFor(policy, namespace)} is being deleted.`);
}

/** Returns the data of a response; `undefined` for a 404. Throws for any other refusal, because a read does not expect one. */
function foundOr404<T>({ data, refusal }: ApiResponse<T>): T | undefined {
  if (refusal === undefined) return data;
  if (refusal.status === 404) return undefined;
  throw new Error(`${refusal.kind}: ${refusal.detail}`);
}

const waiting = (message: string): ResolvedApi => ({ verdict: progressing("DependencyNotReady", message) });
