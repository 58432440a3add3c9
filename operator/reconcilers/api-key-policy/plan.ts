import { isDeepStrictEqual } from "node:util";
import { ApiKeyPolicySpec } from "../../../core/manifests/api-key-policy.ts";
import { compilePolicy } from "../../../core/manifests/compile-policy.ts";
import type { CompiledPolicy } from "../../../core/policies/policy.ts";
import { conflictOf, ownOf, reservedFor } from "../claims.ts";
import { managerFor } from "../names-in-messages.ts";
import {
  CONFLICT_REQUEUE_MS,
  type FurtherCondition,
  firstOf,
  type Plan,
  progressing,
  ready,
  released,
  stalled,
  type Verdict,
} from "../plan.ts";
import { deletionPolicyOf, invalid, mayRefer } from "../spec.ts";
import { bypassable } from "./bypassable.ts";
import { enforced, paceOf, toDataPlaneStatus } from "./enforced.ts";
import { heldConditions } from "./held.ts";
import {
  gatedPods,
  type NetworkAction,
  networkActions,
  networkCleanUp,
  networkConflict,
  ownNetworkPolicy,
} from "./network.ts";
import type { ObservedPolicy, StoredApi } from "./observed.ts";
import { ofSidecars } from "./sidecars.ts";

export type PolicyAction =
  | { readonly type: "createApi"; readonly name: string }
  | { readonly type: "adoptApi" | "renameApi"; readonly apiId: string; readonly name: string }
  | {
      readonly type: "setPolicy";
      readonly apiId: string;
      readonly name: string;
      readonly uid: string;
      readonly generation: number;
      readonly policy: CompiledPolicy;
    }
  | { readonly type: "deletePolicy"; readonly policyId: string }
  | NetworkAction
  | { readonly type: "deleteApi" | "releaseApi"; readonly apiId: string };

/** Requeue interval while the operator does not know yet whether a sidecar is stale. */
const OPEN_MS = 2_000;

/** Plans the actions that store the API and the compiled policy of the manifest. */
export function planPolicy(observed: ObservedPolicy): Plan<PolicyAction> {
  const { object, api, stored } = observed;
  if (object.metadata.deletionTimestamp !== undefined) return planDeletion(observed);
  const own = ownOf(observed);
  const status = {
    workspaceId: own?.workspaceId,
    apiId: api?.apiId,
    policyId: own?.policyId,
    policyVersion: own?.version,
    dataPlane: toDataPlaneStatus(own?.dataPlane, observed),
  };
  const verdict = firstOf(observed, CHECKS);
  if (verdict !== undefined) {
    const conditions = heldConditions(verdict, observed);
    return { actions: [], verdict, status, conditions, requeueAfterMs: CONFLICT_REQUEUE_MS };
  }
  const actions = actionsFor(observed);
  if (actions.length > 0) {
    return { actions, verdict: progressing("Progressing", "The policy is being written."), status };
  }
  const active = enforced(stored?.dataPlane, observed);
  const sidecars = ofSidecars(observed);
  // A policy may become Stale as time passes, even if the reports do not change.
  const isOpen = sidecars.some(({ type, status: known }) => type === "Stale" && known === "Unknown");
  const conflict = networkConflict(observed);
  return {
    // Pods that start or end require actions on the network, which do not indicate drift of the database.
    actions: networkActions(observed),
    isDue: true,
    verdict: conflict ?? ready(`The policy is stored as ${stored?.policyId ?? ""}.`),
    status,
    conditions: [ACCEPTED, active, bypassable(observed), ...sidecars],
    seenAtMs: observed.seenAtMs,
    pace: paceOf(active, observed) ?? (isOpen ? { soonMs: OPEN_MS, sinceMs: observed.nowMs } : undefined),
    ...(isOpen ? { requeueAfterMs: OPEN_MS } : conflict === undefined ? {} : { requeueAfterMs: CONFLICT_REQUEUE_MS }),
  };
}

/** Checks that prevent a policy from being stored. The first failing check is reported, and the previous policy stays active. */
const CHECKS = [
  ({ parsed }: ObservedPolicy): Verdict | undefined =>
    parsed.problems === undefined ? undefined : invalid(parsed.problems),

  // A pod has one gate, and a gate has one policy. If two policies select a pod, the webhook injects a gate for the older one.
  ({ selected, object, manager }: ObservedPolicy): Verdict | undefined => {
    if (typeof selected !== "object" || selected.competitor === undefined) return undefined;
    return conflictOf(
      { object, manager, stored: undefined, claimants: [selected.competitor] },
      {
        competitor: (competitor) =>
          `${competitor} is older and guards ${selected.contested} of the running pods of spec.selector. Narrow one of the two selectors.`,
      },
    );
  },

  (observed: ObservedPolicy): Verdict | undefined => {
    const { parsed, namespaces } = observed;
    if (parsed.spec === undefined) return undefined;
    // Treats all names as resolved here, so that manifest errors are reported before missing dependencies.
    const namespaceIds = new Map([...namespaces.keys()].map((name) => [name, name]));
    const compiled = compilePolicy(parsed.spec, { apiId: "unknown", namespaceIds });
    return Array.isArray(compiled) ? invalid(compiled) : undefined;
  },

  // The Kubernetes API server rejects such a spec, but a directory may contain one.
  ({ parsed: { spec }, api, manager }: ObservedPolicy): Verdict | undefined => {
    const isMoved =
      spec?.api.id === undefined
        ? api !== undefined && api.manager !== manager && !isLeft(api, manager)
        : api !== undefined && api.apiId !== spec.api.id;
    if (!isMoved) return undefined;
    return stalled(
      "InvalidSpec",
      `spec.api: a policy cannot move to another API; it is ${api?.apiId}. Create another policy.`,
    );
  },

  ({ parsed: { spec }, api }: ObservedPolicy): Verdict | undefined =>
    spec?.api.id === undefined || api !== undefined
      ? undefined
      : progressing(
          "DependencyNotReady",
          `The API ${spec.api.id} does not exist. Correct spec.api.id, or set spec.api.name to create an API.`,
        ),

  ({ parsed: { spec }, api, apiOwner, object, manager }: ObservedPolicy): Verdict | undefined => {
    if (spec?.api.id === undefined || api?.manager === undefined || api.manager === manager) return undefined;
    if (apiOwner !== undefined && mayRefer(ApiKeyPolicySpec, apiOwner, object.metadata.namespace)) return undefined;
    const message = `The API ${api.apiId} belongs to ${managerFor(api.manager, manager)}. Add ${object.metadata.namespace} to the spec.allowedNamespaces of that policy.`;
    return stalled("NotAllowed", message);
  },

  ({ parsed: { spec }, api, manager }: ObservedPolicy): Verdict | undefined => {
    const reserved = spec?.api.id === undefined || api === undefined ? undefined : reservedFor(api, manager);
    return reserved === undefined
      ? undefined
      : stalled("NotAllowed", `The API ${api?.apiId} does not belong to this namespace. ${reserved}`);
  },

  // Checks the API. An API of another manager is not a conflict here, because the previous check has decided whether the policy may use it.
  ({ api, ...claimed }: ObservedPolicy): Verdict | undefined =>
    conflictOf(
      { ...claimed, stored: api },
      {
        competitor: (competitor) =>
          `${competitor} is older and has the same spec.api.name. Choose another name, or refer to that API by its id (status.apiId).`,
      },
    ),

  ({ namespaces }: ObservedPolicy): Verdict | undefined => {
    for (const resolved of namespaces.values()) if ("verdict" in resolved) return resolved.verdict;
    return undefined;
  },

  // Checks the stored policy, whose name is reserved for this object.
  (observed: ObservedPolicy): Verdict | undefined =>
    conflictOf(
      { ...observed, claimants: [] },
      { managed: ({ policyId }, manager) => `The policy ${policyId} is managed by ${manager}.` },
    ),
];

/** Returns whether this object orphaned the API when it was deleted. */
const isLeft = ({ manager: current, lastManager }: StoredApi, manager: string): boolean =>
  current === undefined && lastManager === manager;

function actionsFor({ object, parsed, api, policyName, stored, namespaces, manager }: ObservedPolicy): PolicyAction[] {
  const { spec } = parsed;
  if (spec === undefined) throw new Error("an invalid spec passed the checks");
  const { name } = spec.api;
  // The policy needs the id of the API, which the next pass reads.
  if (api === undefined) return [{ type: "createApi", name: name ?? "" }];
  const { apiId } = api;
  const policy = compile(spec, apiId, namespaces);
  const { uid, generation } = object.metadata;
  const isSet =
    stored !== undefined &&
    stored.manager === manager &&
    stored.uid === uid &&
    stored.generation === generation &&
    isDeepStrictEqual(stored.policy, policy);
  const isTaken = api.manager === undefined && (name !== undefined || spec.adopt !== undefined);
  const isNamed = name === undefined || name === api.name;
  return [
    ...(isTaken ? [{ type: "adoptApi", apiId, name: name ?? api.name } as const] : []),
    ...(isTaken || isNamed ? [] : [{ type: "renameApi", apiId, name } as const]),
    ...(isSet ? [] : [{ type: "setPolicy", apiId, name: policyName, uid, generation, policy } as const]),
  ];
}

function compile(spec: ApiKeyPolicySpec, apiId: string, namespaces: ObservedPolicy["namespaces"]): CompiledPolicy {
  const namespaceIds = new Map<string, string>();
  for (const [name, resolved] of namespaces)
    if ("namespaceId" in resolved) namespaceIds.set(name, resolved.namespaceId);
  const compiled = compilePolicy(spec, { apiId, namespaceIds });
  if (Array.isArray(compiled)) throw new Error("a policy that cannot be compiled passed the checks");
  // Removes `undefined` members, which API responses do not contain either.
  return JSON.parse(JSON.stringify(compiled)) as CompiledPolicy;
}

const ACCEPTED: FurtherCondition = {
  type: "Accepted",
  status: "True",
  reason: "Succeeded",
  message: "The spec is valid and all references are resolved.",
};

/**
 * Plans the deletion of the compiled policy. The API that was created for the policy is deleted only if the spec allows this and the API
 * has no keys, because pruning a manifest must not revoke customers' keys.
 */
function planDeletion(observed: ObservedPolicy): Plan<PolicyAction> {
  const { object, api, manager, hasKeys } = observed;
  const ownPolicy = ownOf(observed);
  const ownApi = ownOf({ manager, stored: api });
  const found = ownNetworkPolicy(observed);
  if (ownPolicy === undefined && ownApi === undefined && found === undefined) return released;
  const status = { apiId: api?.apiId, policyId: ownPolicy?.policyId };
  if (ownApi !== undefined && hasKeys) {
    const message = `The API ${ownApi.apiId} still has keys, and deleting it would revoke them. Delete the keys first, or set spec.deletionPolicy to Orphan to keep the API.`;
    return { actions: [], verdict: stalled("HasKeys", message), status, requeueAfterMs: CONFLICT_REQUEUE_MS };
  }
  if (found !== undefined && gatedPods(observed) === "unknown") {
    const message = `The NetworkPolicy ${found.name} is kept while the pods cannot be listed, because it protects running pods.`;
    return { actions: [], verdict: progressing("Progressing", message), status, requeueAfterMs: CONFLICT_REQUEUE_MS };
  }
  const type = deletionPolicyOf(object, "Orphan") === "Delete" ? "deleteApi" : "releaseApi";
  return {
    actions: [
      ...(ownPolicy === undefined ? [] : [{ type: "deletePolicy", policyId: ownPolicy.policyId } as const]),
      ...(ownApi === undefined ? [] : [{ type, apiId: ownApi.apiId } as const]),
      ...(found === undefined ? [] : [networkCleanUp(observed, found)]),
    ],
    verdict: progressing("Progressing", "The policy is being cleaned up."),
    status,
  };
}
