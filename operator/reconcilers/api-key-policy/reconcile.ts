import { isDeepStrictEqual } from "node:util";
import { ApiKeyPolicySpec } from "../../../core/manifests/api-key-policy.ts";
import { compileOnStale, namespacesOf } from "../../../core/manifests/compile-policy.ts";
import { isKubeError } from "../../runtime/kube-client.ts";
import type { ManifestObject } from "../../source/contract.ts";
import { applyManifest, deleteManifest, ownerOfApi } from "../apply-manifest.ts";
import { competitorsOf } from "../claims.ts";
import { type Context, managerOf } from "../context.ts";
import { labelOf } from "../names-in-messages.ts";
import { referToNames } from "../namespace-ref.ts";
import { CONFLICT_REQUEUE_MS, progressing, type Result, released, stalled, type Verdict } from "../plan.ts";
import type { KindSteps, Ownership } from "../reconcile-object.ts";
import { deletionPolicyOf, invalid, mayRefer, type ParsedSpec, parseSpec } from "../spec.ts";
import { conditionsOf, ownStatus } from "../status.ts";
import { concerns, selectorOf } from "./choose-policy.ts";
import { heldConditions } from "./held.ts";
import { gatedPods, type NetworkAction, networkCleanUp, ownNetworkPolicy } from "./network.ts";
import type { ObservedPolicy, StoredPolicy } from "./observed.ts";
import { podConflict, policyStatusOf, reportPolicy } from "./plan.ts";
import { gatedOf, namedBy, selectedBy } from "./selection.ts";

export const policySteps: KindSteps = { reconcile: reconcilePolicy, held: heldConditions };

/** Maximum number of rounds of network actions. After each round, the conditions are computed again. */
const ROUNDS_MAX = 3;

async function reconcilePolicy(object: ManifestObject, ctx: Context, ownership: Ownership): Promise<Result | "again"> {
  const parsed = parseSpec(ApiKeyPolicySpec, object);
  if (object.metadata.deletionTimestamp !== undefined) return await cleanUp(object, parsed, ctx);
  const known = ctx.policyCache.get(object);
  if (known !== undefined) {
    const { stored, seenAtMs, pollId } = known;
    return await enforce(object, { parsed, stored, seenAtMs, pollId }, undefined, ctx);
  }
  const seenAtMs = ctx.nowMs();
  const pollId = ctx.policyCache.begin(object.metadata);
  const result = await store(object, parsed, ctx, ownership);
  if (result === "moved") return "again";
  if (result.verdict === undefined) {
    const { policy } = result.applied;
    if (policy === undefined) throw new Error("the API returned no policy");
    const onStale = parsed.spec && compileOnStale(parsed.spec);
    return await enforce(object, { parsed, stored: { ...policy, onStale }, seenAtMs, pollId }, result.drift, ctx);
  }
  const stored = ownership.isOwned ? await findStored(object, ctx) : undefined;
  const observed = { ...seenNow(object, ctx), parsed, stored, seenAtMs, pollId };
  const { verdict } = result;
  const conditions = heldConditions(verdict, observed);
  const status = { ...(stored === undefined ? {} : ownStatus(object)), ...policyStatusOf(observed) };
  return { verdict, status, conditions, requeueAfterMs: CONFLICT_REQUEUE_MS };
}

type Known = Pick<ObservedPolicy, "parsed" | "stored" | "seenAtMs" | "pollId">;

/** Writes the NetworkPolicy of a stored policy, and returns its status. */
async function enforce(
  object: ManifestObject,
  known: Known,
  drift: string | undefined,
  ctx: Context,
): Promise<Result | "again"> {
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const observed = { ...seenNow(object, ctx), ...known };
    const { actions, ...result } = reportPolicy(observed);
    if (actions.length === 0) {
      if (result.verdict.state === "Ready") ctx.policyCache.remember({ observed, pace: result.pace });
      return { ...result, drift };
    }
    for (const action of actions) {
      const verdict = await applyToNetwork(action, object, ctx);
      if (verdict !== undefined) return { ...result, verdict, drift, requeueAfterMs: CONFLICT_REQUEUE_MS };
    }
  }
  return "again";
}

/** Stores the API and the compiled policy, unless another manifest prevents this or an older policy selects the same pods. */
async function store(
  object: ManifestObject,
  { raw, spec, problems }: ParsedSpec<ApiKeyPolicySpec>,
  ctx: Context,
  ownership: Ownership,
): Promise<Awaited<ReturnType<typeof applyManifest>> | { readonly applied?: never; readonly verdict: Verdict }> {
  if (problems !== undefined) return { verdict: invalid(problems) };
  const { namespace } = object.metadata;
  const conflict = podConflict(object, select(object, ctx));
  if (conflict !== undefined) return { verdict: conflict };
  const { managers, verdict } = referToNames(namespacesOf(spec), namespace, ctx);
  if (verdict !== undefined) return { verdict };
  const apply = (mayReferTo: readonly string[]) =>
    applyManifest(object, ctx, ownership, {
      spec: raw,
      mayReferTo,
      claimants: competitorsOf(object, ctx.source),
      sayCompetitor: (competitor) =>
        `${competitor} is older and has the same spec.api.name. Choose another name, or refer to that API by its id (status.apiId).`,
    });
  const result = await apply(managers);
  if (result === "moved" || result.verdict === undefined || spec.api.id === undefined) return result;
  if (result.refusal.kind !== "reference_not_allowed") return result;
  const owner = await ownerOfApi(spec.api.id, ctx);
  if (owner === undefined || !mayRefer(ApiKeyPolicySpec, owner, namespace)) return result;
  return await apply([...managers, managerOf(ctx, owner)]);
}

/** Reads the policy that stays active while its changed manifest cannot be applied. */
async function findStored(object: ManifestObject, ctx: Context): Promise<StoredPolicy | undefined> {
  const { data } = await ctx.api.call("policies.getPolicy", { manager: managerOf(ctx, object) });
  return data && { ...data, onStale: data.policy?.onStale };
}

/**
 * Deletes the compiled policy. The API that was created for the policy is deleted only if the spec allows this and the API has no keys.
 * Otherwise, removing a manifest would revoke customers' keys.
 */
async function cleanUp(object: ManifestObject, parsed: ParsedSpec<ApiKeyPolicySpec>, ctx: Context): Promise<Result> {
  const seen = seenNow(object, ctx);
  const found = ownNetworkPolicy(seen);
  const wait = (verdict: Verdict): Result => ({
    verdict,
    status: ownStatus(object),
    conditions: heldConditions(verdict, { ...seen, parsed, stored: undefined, seenAtMs: ctx.nowMs(), pollId: 0 }),
    requeueAfterMs: CONFLICT_REQUEUE_MS,
  });
  if (found !== undefined && gatedPods(seen) === "unknown") {
    const message = `The NetworkPolicy ${found.name} is kept while the pods cannot be listed, because it protects running pods.`;
    return wait(progressing("Progressing", message));
  }
  ctx.policyCache.forget(object.metadata);
  const verdict = await deleteManifest(object, ctx, deletionPolicyOf(object));
  if (verdict !== undefined) return wait(verdict);
  const refused = found && (await applyToNetwork(networkCleanUp(seen, found), object, ctx));
  return refused === undefined ? released : wait(refused);
}

/** Returns the state of the cluster, which can change while the database does not. */
const seenNow = (object: ManifestObject, ctx: Context) => ({
  object,
  selected: select(object, ctx),
  network: ctx.network && (ctx.network.in(object.metadata.namespace) ?? ("unknown" as const)),
  services: ctx.services && (ctx.services.in(object.metadata.namespace) ?? ("unknown" as const)),
  ...withoutSelector(object, ctx),
  heard: ctx.policyCache.reporters(object.metadata),
  previous: conditionsOf(object),
  nowMs: ctx.nowMs(),
});

function select(object: ManifestObject, { pods, source, isNamespaceGuarded }: Context): ObservedPolicy["selected"] {
  const { namespace } = object.metadata;
  if (pods === undefined || selectorOf(object) === undefined) return undefined;
  const seen = pods.in(namespace);
  if (seen === undefined) return "unknown";
  // Lists policies only if this policy selects pods; otherwise no other policy can select the same pods.
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

async function applyToNetwork(
  action: NetworkAction,
  object: ManifestObject,
  { network, source, log, signal }: Context,
): Promise<Verdict | undefined> {
  if (network === undefined || signal.aborted) return undefined;
  try {
    if (action.type === "deleteNetworkPolicy") await network.remove(action.found);
    else if (action.type === "orphanNetworkPolicy") await network.orphan(action.found, action.pods);
    else {
      // This process has written the same spec before, so another writer must have changed the NetworkPolicy since. An operator that has
      // just started cannot detect such a change.
      const isDrift = isDeepStrictEqual(network.lastWritten(object), action.spec);
      await network.apply(object, action, action.found);
      if (!isDrift) return undefined;
      const note = `The NetworkPolicy ${action.name} was ${action.found === undefined ? "deleted" : "edited"} and has been restored.`;
      await source.recordEvent(object, { type: "Warning", reason: "DriftCorrected", action: "Correct", note });
    }
    return undefined;
  } catch (error) {
    // Status 422 occurs, for example, if an admission policy of the cluster rejects the name.
    if (!isKubeError(error, 403) && !isKubeError(error, 422)) throw error;
    log.warn({ object: labelOf(object), err: error }, "NetworkPolicy cannot be changed; the policy is Stalled");
    return stalled("Forbidden", `The NetworkPolicy cannot be changed: ${error.message}`);
  }
}
