import { PublicError } from "../../../core/errors.ts";
import type { Queryable } from "../../../postgres/queryable.ts";
import { type ApiRow, deleteApi, lockApi, updateApi } from "../../db/apis.ts";
import type { AuditTarget } from "../../db/audit.ts";
import { touchKey } from "../../db/key-changes.ts";
import { type KeyRow, lockKey } from "../../db/keys.ts";
import type { ManagedKind } from "../../db/managed-objects.ts";
import { deleteNamespace, lockNamespace, type NamespaceRow, updateNamespaceManager } from "../../db/namespaces.ts";
import {
  deleteOverride,
  deleteOverridesOfNamespace,
  lockOverride,
  type OverrideRow,
  updateOverride,
} from "../../db/overrides.ts";
import {
  deletePermission,
  findPermission,
  lockPermission,
  type PermissionRow,
  updatePermission,
} from "../../db/permissions.ts";
import { deletePolicy, lockPolicy, type PolicyRow, updatePolicyManager } from "../../db/policies.ts";
import { deleteRole, findRole, lockRole, type RoleRow, updateRole } from "../../db/roles.ts";
import {
  apiNotFound,
  keyNotFound,
  namespaceNotFound,
  overrideNotFound,
  permissionNotFound,
  policyNotFound,
  roleNotFound,
} from "../refusals/refusals.ts";

/*
 * Differences between the kinds of objects that a manifest can manage. The rules that all kinds share for changes and deletions are in
 * rules.ts and changes.ts.
 */

export interface ManagedRow {
  readonly id: string;
  readonly manager: string | null;
}

/** A caller's reference to an object. */
export interface NamedObject {
  readonly workspaceId: string;
  /** The object's id, or its name if the procedure accepts names. */
  readonly which: string;
}

/** Time and workspace of an operation. */
export interface Timestamp {
  readonly workspaceId: string;
  readonly timeMs: number;
}

/**
 * Functions and texts for one kind of managed object. `Audited` has only the columns that the audit log shows, so it can also describe an
 * object that is not stored yet.
 */
export interface ManagedResource<Row extends ManagedRow = never, Ref extends NamedObject = never, Audited = never> {
  readonly kind: ManagedKind;
  /** Noun of the kind, which precedes the object's id in error messages. */
  readonly noun: string;
  /** Name of the unique index (`<table>_manager`) that allows only one object per manager; of keys, one per name. */
  readonly index: `${string}_manager`;
  /** Event names of the audit log. */
  readonly events: { readonly created: string; readonly changed: string; readonly deleted: string };
  readonly targets: (object: Audited) => readonly AuditTarget[];
  readonly notFound: (which: string) => PublicError;
  /** Returns the live object and locks it; other transactions cannot change its row until this one ends. */
  readonly lock: (tx: Queryable, ref: Ref) => Promise<Row | undefined>;
  /** Writes the manager of a locked object, and leaves the other columns unchanged. */
  readonly setManager: (tx: Queryable, row: Row, manager: string | null, timestamp: Timestamp) => Promise<void>;
}

/** A kind of object that every caller deletes in the same way. */
export interface Removable<Row extends ManagedRow> {
  readonly remove: (tx: Queryable, row: Row, timestamp: Timestamp) => Promise<void>;
}

/** A kind of object that keys can hold, such as a role. A million keys can hold the same object. */
export interface LockableResource<Row extends ManagedRow> {
  readonly kind: "role" | "permission";
  readonly find: (db: Queryable, ref: NamedObject) => Promise<Row | undefined>;
}

/** An override, given by its identifier, in a namespace that is already locked. */
export interface NamedOverride extends NamedObject {
  readonly namespace: Pick<NamespaceRow, "id" | "name">;
}
export type OverrideOfNamespace = OverrideRow & Pick<NamedOverride, "namespace">;

type AuditedRole = Pick<RoleRow, "id" | "name">;
type AuditedPermission = Pick<PermissionRow, "id" | "slug">;
type AuditedOverride = Pick<OverrideOfNamespace, "id" | "identifier" | "namespace">;

interface Resources {
  readonly api: ManagedResource<ApiRow, NamedObject, Pick<ApiRow, "id" | "name">> & Removable<ApiRow>;
  readonly role: ManagedResource<RoleRow, NamedObject, AuditedRole> & Removable<RoleRow> & LockableResource<RoleRow>;
  readonly permission: ManagedResource<PermissionRow, NamedObject, AuditedPermission> &
    Removable<PermissionRow> &
    LockableResource<PermissionRow>;
  readonly namespace: ManagedResource<NamespaceRow, NamedObject, Pick<NamespaceRow, "id" | "name">> &
    Removable<NamespaceRow>;
  readonly override: ManagedResource<OverrideOfNamespace, NamedOverride, AuditedOverride> &
    Removable<OverrideOfNamespace>;
  /** Keys have no `remove` here: `keys.deleteKey` either marks a key as deleted or removes it, and also handles its credits. */
  readonly key: ManagedResource<KeyRow, NamedObject, Pick<KeyRow, "id" | "name" | "api_id">>;
  readonly policy: ManagedResource<PolicyRow, NamedObject, Pick<PolicyRow, "id" | "name" | "api_id">> &
    Removable<PolicyRow>;
}

export const MANAGED: { readonly [Kind in ManagedKind]: Resources[Kind] & { readonly kind: Kind } } = {
  api: {
    kind: "api",
    noun: "API",
    index: "apis_manager",
    events: { created: "api.create", changed: "api.update", deleted: "api.delete" },
    targets: ({ id, name }) => [{ type: "api", id, name }],
    notFound: apiNotFound,
    lock: (tx, { workspaceId, which }) => lockApi(tx, { workspaceId, apiId: which }),
    setManager: (tx, { id, name }, manager, { workspaceId, timeMs }) =>
      updateApi(tx, { workspaceId, apiId: id, name, manager, updatedAt: timeMs }),
    remove: async (tx, { id, delete_protection }, { workspaceId, timeMs }) => {
      if (delete_protection) {
        throw new PublicError("protected_resource", `The API ${id} has delete protection; disable it first.`);
      }
      await deleteApi(tx, { workspaceId, apiId: id, deletedAt: timeMs });
    },
  },
  role: {
    kind: "role",
    noun: "role",
    index: "roles_manager",
    events: { created: "role.create", changed: "role.update", deleted: "role.delete" },
    targets: ({ id, name }) => [{ type: "role", id, name }],
    notFound: roleNotFound,
    find: (db, { workspaceId, which }) => findRole(db, { workspaceId, role: which }),
    lock: (tx, { workspaceId, which }) => lockRole(tx, { workspaceId, role: which }),
    setManager: (tx, role, manager, { workspaceId }) => updateRole(tx, { workspaceId, ...role, manager }),
    remove: (tx, { id }, { workspaceId }) => deleteRole(tx, { workspaceId, roleId: id }),
  },
  permission: {
    kind: "permission",
    noun: "permission",
    index: "permissions_manager",
    events: { created: "permission.create", changed: "permission.update", deleted: "permission.delete" },
    targets: ({ id, slug }) => [{ type: "permission", id, name: slug }],
    notFound: permissionNotFound,
    find: (db, { workspaceId, which }) => findPermission(db, { workspaceId, permission: which }),
    lock: (tx, { workspaceId, which }) => lockPermission(tx, { workspaceId, permission: which }),
    setManager: (tx, permission, manager, { workspaceId }) =>
      updatePermission(tx, { workspaceId, ...permission, manager }),
    remove: (tx, { id }, { workspaceId }) => deletePermission(tx, { workspaceId, permissionId: id }),
  },
  namespace: {
    kind: "namespace",
    noun: "rate-limit namespace",
    index: "ratelimit_namespaces_manager",
    events: {
      created: "ratelimitNamespace.create",
      changed: "ratelimitNamespace.update",
      deleted: "ratelimitNamespace.delete",
    },
    targets: ({ id, name }) => [{ type: "ratelimitNamespace", id, name }],
    notFound: namespaceNotFound,
    lock: (tx, { workspaceId, which }) => lockNamespace(tx, { workspaceId, namespace: which }),
    setManager: (tx, { id }, manager, { workspaceId }) => updateNamespaceManager(tx, { workspaceId, id, manager }),
    // Marks the namespace and its overrides as deleted.
    remove: async (tx, { id }, { workspaceId, timeMs: deletedAt }) => {
      await deleteNamespace(tx, { workspaceId, id, deletedAt });
      await deleteOverridesOfNamespace(tx, { workspaceId, namespaceId: id, deletedAt });
    },
  },
  override: {
    kind: "override",
    noun: "override",
    index: "ratelimit_overrides_manager",
    events: {
      created: "ratelimit.set_override",
      changed: "ratelimit.set_override",
      deleted: "ratelimit.delete_override",
    },
    targets: ({ id, identifier, namespace }) => [
      { type: "ratelimitOverride", id, name: identifier },
      { type: "ratelimitNamespace", id: namespace.id, name: namespace.name },
    ],
    notFound: overrideNotFound,
    lock: async (tx, { workspaceId, which, namespace }) => {
      const row = await lockOverride(tx, { workspaceId, namespaceId: namespace.id, identifier: which });
      return row === undefined ? undefined : { ...row, namespace };
    },
    setManager: (tx, { id, max_count: limit, duration_ms: durationMs, async }, manager, { workspaceId, timeMs }) =>
      updateOverride(tx, { workspaceId, id, limit, durationMs, async, manager, updatedAt: timeMs }),
    remove: (tx, { id }, { workspaceId, timeMs }) => deleteOverride(tx, { workspaceId, id, deletedAt: timeMs }),
  },
  key: {
    kind: "key",
    noun: "key",
    index: "keys_manager",
    events: { created: "key.create", changed: "key.update", deleted: "key.delete" },
    targets: ({ id, name, api_id }) => [
      { type: "key", id, name: name ?? undefined },
      { type: "api", id: api_id },
    ],
    notFound: keyNotFound,
    lock: (tx, { workspaceId, which }) => lockKey(tx, { workspaceId, keyId: which }),
    setManager: (tx, { id }, manager, { workspaceId, timeMs }) =>
      touchKey(tx, { workspaceId, keyId: id, manager, updatedAt: timeMs }),
  },
  policy: {
    kind: "policy",
    noun: "policy",
    index: "policies_manager",
    events: { created: "policy.create", changed: "policy.update", deleted: "policy.delete" },
    targets: ({ id, name, api_id }) => [
      { type: "policy", id, name },
      { type: "api", id: api_id },
    ],
    notFound: policyNotFound,
    lock: (tx, { workspaceId, which }) => lockPolicy(tx, { workspaceId, policyId: which }),
    setManager: (tx, { id }, manager, { workspaceId }) =>
      updatePolicyManager(tx, { workspaceId, policyId: id, manager }),
    remove: (tx, { id }, { workspaceId, timeMs }) => deletePolicy(tx, { workspaceId, policyId: id, deletedAt: timeMs }),
  },
};
