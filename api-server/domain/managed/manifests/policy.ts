import { isDeepStrictEqual } from "node:util";
import { PublicError } from "../../../../core/errors.ts";
import type { ApiKeyPolicySpec } from "../../../../core/manifests/api-key-policy.ts";
import { compilePolicy, namespacesOf } from "../../../../core/manifests/compile-policy.ts";
import { requireManager } from "../../../../core/manifests/manager.ts";
import type { CompiledPolicy } from "../../../../core/policies/policy.ts";
import { policyWarnings } from "../../../../core/policies/policy-warnings.ts";
import { lockApi } from "../../../db/apis.ts";
import { findOwn } from "../../../db/managed-objects.ts";
import { listNamespacesNamed } from "../../../db/namespaces.ts";
import { findRemaining } from "../../../db/orphaned-objects.ts";
import { lockPolicy, lockPolicyByName, type PolicyRow } from "../../../db/policies.ts";
import { createApi, updateApi } from "../../apis/apis.ts";
import { setPolicy } from "../../policies/set-policy.ts";
import {
  type Application,
  type Applied,
  managing,
  type Planned,
  type Transaction,
  withLastManager,
} from "./application.ts";
import { type Owned, refuse, requireClaim, requireManaged, requireReference } from "./claim.ts";
import { differencesBetween } from "./differences.ts";
import { TO_APPLY } from "./permissions.ts";

export interface StoredApi extends Owned {
  readonly name: string;
}

export interface StoredPolicy extends Owned {
  readonly uid: string;
  readonly generation: number;
  readonly version: number;
  readonly policy: unknown;
}

/** Stored objects that a policy's manifest manages or refers to. */
export interface PolicyState {
  /** API that the manifest created or released, or that its policy uses; if there is none, the API whose id is in the spec. */
  readonly api: StoredApi | undefined;
  readonly policy: StoredPolicy | undefined;
  /** Rate-limit namespaces of the rules, by name. */
  readonly namespaces: ReadonlyMap<string, Owned>;
}

export type PolicyStep = "createApi" | "updateApi" | "setPolicy";

export interface PlannedPolicy extends Planned<PolicyStep> {
  /** Returns the policy for gates, given the id of its API, which may be known only after the API is created. */
  readonly compile: (apiId: string) => CompiledPolicy;
  readonly uid: string;
  readonly generation: number;
}

/**
 * Plans how a manifest changes its API and its compiled policy. Pure.
 * @throws PublicError 400 for a policy that does not compile or that would move to another API; 404 for a missing reference; 409 if the
 * manifest is not allowed to manage or use an object.
 */
export function planPolicy(desired: Application<ApiKeyPolicySpec>, state: PolicyState): PlannedPolicy {
  const { spec, manager, uid = state.policy?.uid ?? manager } = desired;
  const compile = (apiId: string) => compiled(spec, apiId, state.namespaces);
  // Compiles before the references are checked, so that errors of the manifest are reported first.
  const draft = compile(state.api?.id ?? "unknown");
  requireApi(desired, state.api);
  if (spec.api.name !== undefined && state.api?.manager !== manager) requireManaged(desired, "api.name");
  requireNamespaces(desired, state.namespaces);
  const { api, policy } = state;
  if (policy !== undefined && policy.manager !== null) {
    requireClaim(desired, policy, {
      label: `The policy ${policy.id}`,
      field: "api",
      otherwise: OTHERWISE,
      isEqual: true,
    });
  }
  const name = spec.api.name ?? api?.name;
  const isTaken = api?.manager === null && (spec.api.name !== undefined || spec.adopt !== undefined);
  const stored = policy?.uid === uid ? policy : undefined;
  const isSame = isDeepStrictEqual(policy?.policy, draft);
  const generation = desired.generation ?? (stored === undefined ? 1 : stored.generation + (isSame ? 0 : 1));
  const isSet = isSame && policy?.manager === manager && stored?.generation === generation;
  const before = {
    ...(api === undefined ? {} : { api: { name: api.name } }),
    ...(policy === undefined ? {} : { policy: membersOf(policy.policy) }),
  };
  return {
    steps: [
      ...(api === undefined ? (["createApi"] as const) : []),
      ...(api !== undefined && (isTaken || name !== api.name) ? (["updateApi"] as const) : []),
      ...(isSet ? [] : (["setPolicy"] as const)),
    ],
    changes: differencesBetween(before, { api: { name }, policy: membersOf(draft) }),
    compile,
    uid,
    generation,
  };
}

const OTHERWISE = "or choose another spec.api";

/** Returns the members of a policy that its manifest determines. */
function membersOf(policy: unknown): unknown {
  const { apiId: _, formatVersion: __, ...members } = policy as CompiledPolicy;
  return members;
}

function requireApi(desired: Application<ApiKeyPolicySpec>, api: StoredApi | undefined): void {
  const { manager, spec } = desired;
  const { id, name } = spec.api;
  const isOwn = api?.manager === manager || (api?.manager === null && api.lastManager === manager);
  const isMoved = api !== undefined && (id === undefined ? !isOwn : api.id !== id);
  if (isMoved) {
    const message = `a policy cannot move to another API; it is ${api.id}. Create another policy.`;
    throw refuse("invalid_input", "api", message);
  }
  if (id === undefined || name !== undefined) return;
  if (api === undefined) {
    const message = `The API ${id} does not exist. Correct spec.api.id, or set spec.api.name to create an API.`;
    throw refuse("api_not_found", "api.id", message);
  }
  if (!isOwn) requireReference(desired, api, { label: `The API ${id}`, field: "api.id" });
}

function requireNamespaces(desired: Application<ApiKeyPolicySpec>, namespaces: PolicyState["namespaces"]): void {
  for (const [i, { ratelimits }] of desired.spec.rules.entries()) {
    for (const [j, { namespace: name }] of ratelimits.entries()) {
      if (name === undefined) continue;
      const stored = namespaces.get(name);
      const label = `The rate-limit namespace ${name}`;
      const field = `rules[${i}].ratelimits[${j}].namespace`;
      if (stored === undefined) {
        const message = `${label} does not exist or is not stored yet. Create a RatelimitNamespace with this spec.name, or correct the rule.`;
        throw refuse("ratelimit_namespace_not_found", field, message);
      }
      requireReference(desired, stored, { label, field });
    }
  }
}

/**
 * Compiles the policy. The name of a namespace that does not exist serves as its id here, because missing namespaces are reported later.
 */
function compiled(spec: ApiKeyPolicySpec, apiId: string, namespaces: PolicyState["namespaces"]): CompiledPolicy {
  const namespaceIds = new Map(namespacesOf(spec).map((name) => [name, namespaces.get(name)?.id ?? name]));
  const policy = compilePolicy(spec, { apiId, namespaceIds });
  if (!Array.isArray(policy)) return JSON.parse(JSON.stringify(policy)) as CompiledPolicy;
  const errors = policy.map(({ location, message }) => ({ location: `body.${location}`, message }));
  throw new PublicError("invalid_input", policy[0]?.message ?? "the policy does not compile", { errors });
}

export async function applyPolicy(transaction: Transaction, desired: Application<ApiKeyPolicySpec>): Promise<Applied> {
  const { actor } = transaction;
  const state = await readPolicyState(transaction, desired);
  actor.require(TO_APPLY.readApi, state.api?.id ?? desired.spec.api.id);
  const { steps, changes, compile, uid, generation } = planPolicy(desired, state);
  const { name } = desired.spec.api;
  let apiId = state.api?.id ?? "";
  let policyId = state.policy?.id ?? "";
  for (const step of steps) {
    if (step === "createApi") {
      actor.require(TO_APPLY.createApi);
      apiId = await createApi(actor, name ?? "");
    } else if (step === "updateApi") {
      await updateApi(managing(actor, { adopt: true }), TO_APPLY.updateApi, { apiId, name });
    } else {
      const { manager } = desired;
      const policy = { apiId, manager, name: policyNameOf(manager), uid, generation, policy: compile(apiId) };
      // It is safe to adopt an unmanaged policy with this name: the name contains the manifest's own name, so only this manifest can have
      // released the policy.
      ({ policyId } = await setPolicy(managing(actor, { adopt: true }), TO_APPLY.updateApi, policy));
    }
  }
  const outcome = steps.length === 0 ? "unchanged" : state.policy === undefined ? "created" : "updated";
  const warnings = policyWarnings(compile(apiId)).map(({ rule, message }) => ({
    path: `spec.rules[${rule}]`,
    message,
  }));
  return { outcome, ids: { apiId, policyId }, changes, warnings };
}

/** Returns the name of the policy of a manager, `<cluster>/<namespace>/<name>`. */
export function policyNameOf(manager: string): string {
  const { cluster, namespace, name } = requireManager(manager);
  return `${cluster}/${namespace}/${name}`;
}

/** Reads and locks what the manifest manages. */
async function readPolicyState(
  { tx, actor }: Transaction,
  { manager, spec }: Application<ApiKeyPolicySpec>,
): Promise<PolicyState> {
  const { workspaceId } = actor.caller;
  const ownApi = await findOwn(tx, "api", { workspaceId, manager });
  const found = await findOwn(tx, "policy", { workspaceId, manager });
  const own = found && (await lockPolicy(tx, { workspaceId, policyId: found.id }));
  const apiId = ownApi?.id ?? own?.api_id ?? spec.api.id ?? (await findRemaining(tx, "api", { workspaceId, manager }));
  const row = apiId === undefined ? undefined : await lockApi(tx, { workspaceId, apiId });
  const api = row && (await withLastManager(tx, { workspaceId, kind: "api" }, row));
  const named =
    own ?? (api && (await lockPolicyByName(tx, { workspaceId, apiId: api.id, name: policyNameOf(manager) })));
  const policy: (PolicyRow & Owned) | undefined =
    named && (await withLastManager(tx, { workspaceId, kind: "policy" }, named));
  const names = namespacesOf(spec);
  const namespaces = new Map<string, Owned>();
  for (const namespace of names.length === 0 ? [] : await listNamespacesNamed(tx, { workspaceId, names })) {
    namespaces.set(namespace.name, await withLastManager(tx, { workspaceId, kind: "namespace" }, namespace));
  }
  return { api, policy, namespaces };
}
