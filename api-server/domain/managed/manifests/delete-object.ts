import { PublicError } from "../../../../core/errors.ts";
import type { DeletionPolicy } from "../../../../core/manifests/fields.ts";
import { lockApi } from "../../../db/apis.ts";
import { listKeysOfManager } from "../../../db/keys.ts";
import { findOneKeyOfApi } from "../../../db/keys-of-api.ts";
import { findOwn } from "../../../db/managed-objects.ts";
import { lockNamespace, shareLockNamespace } from "../../../db/namespaces.ts";
import { lockOverrideOfManager } from "../../../db/overrides.ts";
import { lockPolicy } from "../../../db/policies.ts";
import { removeKey } from "../../keys/remove-key.ts";
import { deleteHeld } from "../../permissions/many-holders.ts";
import { deleteManaged } from "../changes.ts";
import { MANAGED } from "../resources.ts";
import { managing, type StoredIds, type Transaction } from "./application.ts";
import type { AppliedKind } from "./apply-object.ts";
import { TO_DELETE, type ToDelete } from "./permissions.ts";

export interface Deletion {
  readonly manager: string;
  /** Whether to delete or to release the stored objects; `undefined` for the default of the kind. */
  readonly deletionPolicy?: DeletionPolicy | undefined;
}

export interface Deleted {
  readonly outcome: "deleted" | "released" | "absent";
  readonly ids: StoredIds;
}

type Delete = (transaction: Transaction<ToDelete>, deletion: Deletion) => Promise<Deleted>;

/** Maximum number of keys that one call revokes; a manifest has far fewer. */
const KEYS_MAX = 1_000;

const ABSENT: Deleted = { outcome: "absent", ids: {} };

const outcomeOf = (policy: DeletionPolicy): Deleted["outcome"] => (policy === "Delete" ? "deleted" : "released");

/** Functions that delete or release what a manifest manages, by kind. It is not an error if the manifest manages nothing. */
export const DELETE: Readonly<Record<AppliedKind, Delete>> = {
  /** Without a deletion policy, deletes the role only if no key has it. */
  Role: async ({ tx, actor }, { manager, deletionPolicy }) => {
    const { workspaceId } = actor.caller;
    actor.require(TO_DELETE.readRole);
    const own = await findOwn(tx, "role", { workspaceId, manager });
    if (own === undefined) return ABSENT;
    actor.require(TO_DELETE.deleteRole);
    const policy = deletionPolicy ?? "Delete";
    const ref = { workspaceId, which: own.id };
    await deleteHeld(managing(actor, { release: policy === "Orphan" }), MANAGED.role, ref, {
      onlyIfUnused: deletionPolicy === undefined,
    });
    return { outcome: outcomeOf(policy), ids: { roleId: own.id } };
  },

  RatelimitNamespace: async ({ tx, actor }, { manager, deletionPolicy = "Delete" }) => {
    const { workspaceId } = actor.caller;
    const own = await findOwn(tx, "namespace", { workspaceId, manager });
    actor.require(TO_DELETE.readNamespace, own?.id);
    const row = own && (await lockNamespace(tx, { workspaceId, namespace: own.id }));
    if (row === undefined) return ABSENT;
    actor.require(TO_DELETE.deleteNamespace, row.id);
    await deleteManaged(tx, managing(actor, { release: deletionPolicy === "Orphan" }), MANAGED.namespace, row);
    return { outcome: outcomeOf(deletionPolicy), ids: { namespaceId: row.id } };
  },

  RatelimitOverride: async ({ tx, actor }, { manager, deletionPolicy = "Delete" }) => {
    const { workspaceId } = actor.caller;
    const found = await findOwn(tx, "override", { workspaceId, manager });
    if (found === undefined) {
      actor.require(TO_DELETE.readOverride);
      return ABSENT;
    }
    const row = await lockOverrideOfManager(tx, { workspaceId, manager });
    const namespace = row && (await shareLockNamespace(tx, { workspaceId, namespace: row.namespace_id }));
    if (row === undefined || namespace === undefined) return ABSENT;
    actor.require(TO_DELETE.readOverride, namespace.id);
    actor.require(TO_DELETE.deleteOverride, namespace.id);
    const acting = managing(actor, { release: deletionPolicy === "Orphan" });
    await deleteManaged(tx, acting, MANAGED.override, { ...row, namespace });
    return { outcome: outcomeOf(deletionPolicy), ids: { overrideId: row.id, namespaceId: namespace.id } };
  },

  /** Revokes all keys, including replaced keys that are still valid during their overlap. */
  ApiKey: async ({ tx, actor }, { manager }) => {
    const { workspaceId } = actor.caller;
    const keys = await listKeysOfManager(tx, { workspaceId, manager, rowsMax: KEYS_MAX });
    if (keys.length === 0) actor.require(TO_DELETE.readKey);
    for (const { id: keyId, api_id } of keys) {
      actor.require(TO_DELETE.readKey, api_id);
      await removeKey(actor, { keyId, permanent: false, needed: TO_DELETE.deleteKey });
    }
    const [current] = keys;
    return current === undefined ? ABSENT : { outcome: "deleted", ids: { keyId: current.id } };
  },

  /** Always deletes the policy. The deletion policy applies only to the API, which is deleted only if it has no keys. */
  ApiKeyPolicy: async ({ tx, actor }, { manager, deletionPolicy = "Orphan" }) => {
    const { workspaceId } = actor.caller;
    const ownPolicy = await findOwn(tx, "policy", { workspaceId, manager });
    const ownApi = await findOwn(tx, "api", { workspaceId, manager });
    const policy = ownPolicy && (await lockPolicy(tx, { workspaceId, policyId: ownPolicy.id }));
    const api = ownApi && (await lockApi(tx, { workspaceId, apiId: ownApi.id }));
    actor.require(TO_DELETE.readApi, api?.id ?? policy?.api_id);
    if (api !== undefined && deletionPolicy === "Delete") {
      actor.require(TO_DELETE.deleteApi, api.id);
      await requireNoKeys({ tx, actor }, api.id);
    }
    if (policy !== undefined) {
      actor.require(TO_DELETE.updateApi, policy.api_id);
      await deleteManaged(tx, actor, MANAGED.policy, policy);
    }
    if (api !== undefined) {
      actor.require(TO_DELETE.updateApi, api.id);
      await deleteManaged(tx, managing(actor, { release: deletionPolicy === "Orphan" }), MANAGED.api, api);
    }
    if (policy === undefined && api === undefined) return ABSENT;
    const ids = {
      ...(api === undefined ? {} : { apiId: api.id }),
      ...(policy === undefined ? {} : { policyId: policy.id }),
    };
    return { outcome: api === undefined ? "deleted" : outcomeOf(deletionPolicy), ids };
  },
};

async function requireNoKeys({ tx, actor }: Transaction<ToDelete>, apiId: string): Promise<void> {
  const key = await findOneKeyOfApi(tx, { workspaceId: actor.caller.workspaceId, apiId });
  if (key === undefined) return;
  throw new PublicError(
    "api_has_keys",
    `The API ${apiId} still has keys, and deleting it would revoke them. Delete the keys first, or set spec.deletionPolicy to Orphan to keep the API.`,
  );
}
