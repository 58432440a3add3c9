import { ApiKeyPolicySpec } from "../../../core/manifests/api-key-policy.ts";
import { namespacesOf } from "../../../core/manifests/compile-policy.ts";
import type { CompiledPolicy } from "../../../core/policies/policy.ts";
import type { ManifestObject } from "../../source/contract.ts";
import { competitorsOf } from "../claims.ts";
import { type Context, managedBy, managerOf } from "../context.ts";
import { resolveNamespaceByName } from "../namespace-ref.ts";
import { apiIn } from "../raw-spec.ts";
import { deletionPolicyOf, parseSpec } from "../spec.ts";
import { conditionsOf } from "../status.ts";
import { findManaged, findOwned, findRemaining, foundOr404 } from "../stored.ts";
import { concerns, selectorOf } from "./choose-policy.ts";
import type { ObservedPolicy, StoredApi, StoredPolicy } from "./observed.ts";
import { gatedOf, namedBy, selectedBy } from "./selection.ts";

/** Reads the complete state of a policy. Uses the cache if nothing except the reports of its sidecars may have changed. */
export async function gatherPolicy(object: ManifestObject, ctx: Context): Promise<ObservedPolicy> {
  const known = ctx.looks.get(object) ?? (await readPolicy(object, ctx));
  return { ...known, ...seenNow(object, ctx) };
}

/** Returns state that changes without a change in the database. */
const seenNow = (object: ManifestObject, ctx: Context) => ({
  object,
  selected: select(object, ctx),
  network: networkOf(object, ctx),
  services: ctx.services && (ctx.services.in(object.metadata.namespace) ?? ("unknown" as const)),
  ...withoutSelector(object, ctx),
  heard: ctx.looks.reporters(object.metadata),
  previous: conditionsOf(object),
  nowMs: ctx.nowMs(),
});

async function readPolicy(
  object: ManifestObject,
  ctx: Context,
): Promise<Omit<ObservedPolicy, keyof ReturnType<typeof seenNow>>> {
  const seenAtMs = ctx.nowMs();
  const pollId = ctx.looks.begin(object.metadata);
  const parsed = parseSpec(ApiKeyPolicySpec, object);
  const manager = managerOf(ctx, object);
  const { namespace, name } = object.metadata;
  const policyName = `${ctx.cluster}/${namespace}/${name}`;
  const [ownApi, ownPolicy] = await Promise.all([
    findOwned(ctx.api, "api", manager),
    findOwned(ctx.api, "policy", manager),
  ]);
  const known = ownPolicy === undefined ? undefined : await findPolicy({ policyId: ownPolicy.id }, ctx);
  const isDeleting = object.metadata.deletionTimestamp !== undefined;
  const namedId = known?.policy?.apiId ?? apiIn(object).id;
  // A manifest that is applied again finds the API that it orphaned. Customers still use the keys of this API.
  const leftId =
    ownApi !== undefined || namedId !== undefined || isDeleting
      ? undefined
      : await findRemaining(ctx.api, "api", manager);
  const apiId = ownApi?.id ?? namedId ?? leftId;
  const api = apiId === undefined ? undefined : await findApi(apiId, ownApi && manager, ctx);
  const stored = known ?? (apiId === undefined ? undefined : await findPolicy({ apiId, name: policyName }, ctx));
  const wouldDeleteApi = isDeleting && api?.manager === manager && deletionPolicyOf(object, "Orphan") === "Delete";
  const names = parsed.spec === undefined || isDeleting ? [] : namespacesOf(parsed.spec);
  const resolved = await Promise.all(
    names.map(async (one) => [one, await resolveNamespaceByName(one, namespace, ctx)] as const),
  );
  return {
    parsed,
    manager,
    policyName,
    api,
    apiOwner: api?.manager === undefined ? undefined : managedBy(ctx, "ApiKeyPolicy", api.manager),
    stored,
    namespaces: new Map(resolved),
    claimants: competitorsOf(object, ctx.source),
    hasKeys: wouldDeleteApi && (await hasKeys(api.apiId, ctx)),
    seenAtMs,
    pollId,
  };
}

function select(object: ManifestObject, { pods, source, isNamespaceGuarded }: Context): ObservedPolicy["selected"] {
  const { namespace } = object.metadata;
  if (pods === undefined || selectorOf(object) === undefined) return undefined;
  const seen = pods.in(namespace);
  if (seen === undefined) return "unknown";
  // Lists policies only if this policy concerns a pod; otherwise no other policy can select the same pod.
  const policies = seen.some((pod) => concerns(object, pod))
    ? source.having("ApiKeyPolicy", "namespace", namespace)
    : [];
  return selectedBy(object, seen, policies, isNamespaceGuarded?.(namespace));
}

function withoutSelector(object: ManifestObject, { pods }: Context): Pick<ObservedPolicy, "formerPods" | "named"> {
  if (pods === undefined || selectorOf(object) !== undefined) return { formerPods: undefined, named: [] };
  const seen = pods.in(object.metadata.namespace);
  return { formerPods: seen === undefined ? "unknown" : gatedOf(object, seen), named: namedBy(object, seen ?? []) };
}

const networkOf = ({ metadata }: ManifestObject, { network }: Context): ObservedPolicy["network"] =>
  network && (network.in(metadata.namespace) ?? "unknown");

/** Reads the API. `known` is its manager, if it has already been read. */
async function findApi(apiId: string, known: string | undefined, { api }: Context): Promise<StoredApi | undefined> {
  const found = foundOr404(await api.call("apis.getApi", { apiId }));
  if (found === undefined) return undefined;
  if (known !== undefined) return { apiId, name: found.name, manager: known };
  const managed = await findManaged(api, "api", apiId);
  return managed && { apiId, name: found.name, manager: managed.manager, lastManager: managed.lastManager };
}

async function findPolicy(
  named: { readonly policyId: string } | { readonly apiId: string; readonly name: string },
  { api }: Context,
): Promise<StoredPolicy | undefined> {
  const found = foundOr404(await api.call("policies.getPolicy", named));
  if (found === undefined) return undefined;
  const { policyId, workspaceId, uid, generation, version, policy, manager, dataPlane } = found;
  // In the types of the OpenAPI document, an absent optional field has the value `undefined`.
  return {
    policyId,
    workspaceId,
    uid,
    generation,
    version,
    policy: policy as CompiledPolicy | undefined,
    manager,
    dataPlane,
  };
}

async function hasKeys(apiId: string, { api }: Context): Promise<boolean> {
  const keys = foundOr404(await api.call("apis.listKeys", { apiId, limit: 1 }));
  return keys !== undefined && keys.length > 0;
}
