import { ApiKeyPolicySpec } from "../../../core/manifests/api-key-policy.ts";
import { namespacesOf } from "../../../core/manifests/compile-policy.ts";
import type { Condition } from "../../../core/manifests/conditions.ts";
import type { CompiledPolicy } from "../../../core/policies/policy.ts";
import type { ManifestObject } from "../../source/contract.ts";
import { rivalsOf } from "../claims.ts";
import { type Context, managedBy, managerOf } from "../context.ts";
import { type ResolvedNamespace, resolveNamespaceByName } from "../namespace-ref.ts";
import { apiIn } from "../raw-spec.ts";
import { deletionPolicyOf, type ParsedSpec, parseSpec } from "../spec.ts";
import { conditionsOf } from "../status.ts";
import { findManaged, findOwned, foundOr404 } from "../stored.ts";

export interface StoredApi {
  readonly apiId: string;
  readonly name: string;
  readonly manager: string | undefined;
}

export interface DataPlane {
  readonly pods: number;
  readonly current: number;
  readonly oldestLagMs: number;
  /** Sidecars of an older release, which cannot enforce the stored policy. */
  readonly refused?: { readonly pods: number; readonly reason: string } | undefined;
}

export interface StoredPolicy {
  readonly policyId: string;
  readonly uid: string;
  readonly generation: number;
  readonly version: number;
  /** undefined when a later release set it, in a format that the API does not know. */
  readonly policy: CompiledPolicy | undefined;
  readonly manager: string | undefined;
  /** undefined while the store with the sidecars' reports is unreachable. */
  readonly dataPlane: DataPlane | undefined;
}

export interface ObservedPolicy {
  readonly object: ManifestObject;
  readonly parsed: ParsedSpec<ApiKeyPolicySpec>;
  readonly manager: string;
  /** `<cluster>/<namespace>/<name>` */
  readonly policyName: string;
  /** The API that this object made or has its policy in, according to the store; otherwise the one that the spec names by its id. */
  readonly api: StoredApi | undefined;
  /** The object of this source that made the API, if it is another object. */
  readonly apiOwner: ManifestObject | undefined;
  readonly stored: StoredPolicy | undefined;
  /** The rate-limit namespaces of the rules, by their name in the store. */
  readonly namespaces: ReadonlyMap<string, ResolvedNamespace>;
  /** ApiKeyPolicy objects of the same Kubernetes namespace that make an API of the same name, this one too. */
  readonly claimants: readonly ManifestObject[];
  /** Whether the API has keys; read only when a deletion depends on it. */
  readonly hasKeys: boolean;
  /** The conditions of the status so far. */
  readonly previous: readonly Condition[];
  readonly nowMs: number;
}

export async function gatherPolicy(object: ManifestObject, ctx: Context): Promise<ObservedPolicy> {
  const parsed = parseSpec(ApiKeyPolicySpec, object);
  const manager = managerOf(ctx, object);
  const { namespace, name } = object.metadata;
  const policyName = `${ctx.cluster}/${namespace}/${name}`;
  const [ownApi, ownPolicy] = await Promise.all([
    findOwned(ctx.api, "api", manager),
    findOwned(ctx.api, "policy", manager),
  ]);
  const known = ownPolicy === undefined ? undefined : await findPolicy({ policyId: ownPolicy.id }, ctx);
  const apiId = ownApi?.id ?? known?.policy?.apiId ?? apiIn(object).id;
  const api = apiId === undefined ? undefined : await findApi(apiId, ctx);
  const stored = known ?? (apiId === undefined ? undefined : await findPolicy({ apiId, name: policyName }, ctx));
  const isDeleting = object.metadata.deletionTimestamp !== undefined;
  const wouldDeleteApi = isDeleting && api?.manager === manager && deletionPolicyOf(object, "Orphan") === "Delete";
  const names = parsed.spec === undefined || isDeleting ? [] : namespacesOf(parsed.spec);
  const resolved = await Promise.all(
    names.map(async (one) => [one, await resolveNamespaceByName(one, namespace, ctx)] as const),
  );
  return {
    object,
    parsed,
    manager,
    policyName,
    api,
    apiOwner: api?.manager === undefined ? undefined : managedBy(ctx, "ApiKeyPolicy", api.manager),
    stored,
    namespaces: new Map(resolved),
    claimants: rivalsOf(object, ctx.source),
    hasKeys: wouldDeleteApi && (await hasKeys(api.apiId, ctx)),
    previous: conditionsOf(object),
    nowMs: ctx.nowMs(),
  };
}

async function findApi(apiId: string, { api }: Context): Promise<StoredApi | undefined> {
  const found = foundOr404(await api.call("apis.getApi", { apiId }));
  const managed = found === undefined ? undefined : await findManaged(api, "api", apiId);
  return found === undefined || managed === undefined
    ? undefined
    : { apiId, name: found.name, manager: managed.manager };
}

async function findPolicy(
  named: { readonly policyId: string } | { readonly apiId: string; readonly name: string },
  { api }: Context,
): Promise<StoredPolicy | undefined> {
  const found = foundOr404(await api.call("policies.getPolicy", named));
  const managed = found === undefined ? undefined : await findManaged(api, "policy", found.policyId);
  if (found === undefined || managed === undefined) return undefined;
  const { uid, generation, version, policy, dataPlane } = found;
  return {
    policyId: found.policyId,
    uid,
    generation,
    version,
    // The types come from the OpenAPI document, where an optional field is never absent but undefined.
    policy: policy as CompiledPolicy | undefined,
    manager: managed.manager,
    dataPlane,
  };
}

async function hasKeys(apiId: string, { api }: Context): Promise<boolean> {
  const keys = foundOr404(await api.call("apis.listKeys", { apiId, limit: 1 }));
  return keys !== undefined && keys.length > 0;
}
