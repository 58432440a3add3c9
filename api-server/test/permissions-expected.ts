import { grantsOfPerson } from "../../core/permissions/person-roles.ts";

/*
 * Permissions that each procedure requires, as documented for customers. Tests compare the procedures with this table.
 *
 * `api.<apiId>.read_api` stands for `api.*.read_api` or the tuple with the id; `api.*.create_api` stands only for itself.
 */

export interface Expected {
  /** Permissions that every call requires. */
  readonly needs: readonly string[];
  /** Permissions that the call grants to someone else, which the caller must therefore hold as well. */
  readonly grants?: readonly string[];
  /** Additional permissions, by circumstance. The circumstances are those of `sample-calls.ts`. */
  readonly also?: Readonly<Record<string, readonly string[]>>;
  /**
   * Body fields that are looked up before the permission check. If such a field refers to an unknown object, even a root key without
   * permissions gets 404. If any other field does, such a root key gets 403.
   */
  readonly lookedUpFirst?: readonly string[];
  /**
   * Whether the 403 error contains no id, because the call is rejected before the key's API is known. A root key that has the permission
   * only for another API gets the error for a key that was not found.
   */
  readonly hidesIds?: true;
  /** Whether the permission for any other object suffices for the call, which then returns an empty result. */
  readonly narrows?: true;
  /** Whether a root key that has the permission for no object at all is rejected before any read, with an error that contains no id. */
  readonly strangersLearnNoId?: true;
  /** Alternative permissions, by the permission in `also` that each can replace. */
  readonly orElse?: Readonly<Record<string, string>>;
  /** Permissions in `needs` and `also` for which v1 responds with 403 UNAUTHORIZED if the root key lacks them (api-v1.md section 4). */
  readonly refusedAsUnauthorized?: readonly string[];
  /** Permissions to create an object. If the root key lacks one of them, v1 responds with 404, as if the object were not found. */
  readonly refusedAsNotFound?: readonly string[];
}

const rbac = (action: string) => `rbac.*.${action}`;
const api = (action: string) => `api.<apiId>.${action}`;
const workspace = (action: string) => `workspace.*.${action}`;
const namespace = (action: string) => `ratelimit.<namespaceId>.${action}`;

/** Expected permissions by v2 procedure path. For v1, see `permissions-expected-v1.ts`. */
export const EXPECTED: Readonly<Record<string, Expected>> = {
  "apis.createApi": { needs: ["api.*.create_api"] },
  "apis.getApi": { needs: [api("read_api")] },
  "apis.updateApi": { needs: [api("update_api")], lookedUpFirst: ["apiId"] },
  "apis.deleteApi": { needs: [api("delete_api")] },
  "apis.listKeys": {
    needs: [api("read_key"), api("read_api")],
    also: { decrypt: [api("decrypt_key")] },
    lookedUpFirst: ["apiId"],
  },

  "keys.createKey": {
    needs: [api("create_key")],
    also: { recoverable: [api("encrypt_key")] },
    lookedUpFirst: ["apiId"],
  },
  "keys.getKey": { needs: [api("read_key")], also: { decrypt: [api("decrypt_key")] }, lookedUpFirst: ["keyId"] },
  "keys.whoami": { needs: [api("read_key")], lookedUpFirst: ["key"] },
  "keys.explainVerification": { needs: [api("verify_key"), api("read_key")], strangersLearnNoId: true },
  "keys.verifyKey": { needs: [api("verify_key")], hidesIds: true },
  "keys.updateKey": { needs: [api("update_key")], lookedUpFirst: ["keyId"] },
  "keys.updateCredits": { needs: [api("update_key")], lookedUpFirst: ["keyId"] },
  "keys.deleteKey": { needs: [api("delete_key")], lookedUpFirst: ["keyId"] },
  "keys.rerollKey": {
    needs: [api("create_key")],
    also: { recoverable: [api("encrypt_key")] },
    lookedUpFirst: ["keyId"],
  },
  "keys.migrateKeys": { needs: [api("create_key")] },
  "keys.addPermissions": {
    needs: [api("update_key"), rbac("add_permission_to_key")],
    also: { newSlug: [rbac("create_permission")] },
    lookedUpFirst: ["keyId"],
  },
  "keys.removePermissions": {
    needs: [api("update_key"), rbac("remove_permission_from_key")],
    lookedUpFirst: ["keyId"],
  },
  "keys.setPermissions": {
    needs: [api("update_key"), rbac("add_permission_to_key"), rbac("remove_permission_from_key")],
    also: { newSlug: [rbac("create_permission")] },
    lookedUpFirst: ["keyId"],
  },
  "keys.addRoles": { needs: [api("update_key"), rbac("add_role_to_key")], lookedUpFirst: ["keyId"] },
  "keys.removeRoles": { needs: [api("update_key")], lookedUpFirst: ["keyId"] },
  "keys.setRoles": { needs: [api("update_key")], lookedUpFirst: ["keyId"] },

  "identities.createIdentity": { needs: ["identity.*.create_identity"] },
  "identities.getIdentity": { needs: ["identity.<identityId>.read_identity"], lookedUpFirst: ["identity"] },
  "identities.listIdentities": { needs: ["identity.<identityId>.read_identity"], strangersLearnNoId: true },
  "identities.updateIdentity": { needs: ["identity.*.update_identity"] },
  "identities.deleteIdentity": { needs: ["identity.*.delete_identity"] },

  "ratelimit.limit": { needs: [namespace("limit")], also: { newNamespace: ["ratelimit.*.create_namespace"] } },
  "ratelimit.multiLimit": { needs: [namespace("limit")], also: { newNamespace: ["ratelimit.*.create_namespace"] } },
  "ratelimit.setOverride": { needs: [namespace("set_override")], lookedUpFirst: ["namespace"] },
  "ratelimit.getOverride": { needs: [namespace("read_override")], lookedUpFirst: ["namespace"] },
  "ratelimit.listOverrides": { needs: [namespace("read_override")], lookedUpFirst: ["namespace"] },
  "ratelimit.deleteOverride": { needs: [namespace("delete_override")], lookedUpFirst: ["namespace"] },
  "ratelimit.createNamespace": { needs: ["ratelimit.*.create_namespace"] },
  "ratelimit.getNamespace": { needs: [namespace("read_namespace")], lookedUpFirst: ["namespace"] },
  "ratelimit.listNamespaces": { needs: ["ratelimit.*.read_namespace"] },
  "ratelimit.deleteNamespace": { needs: [namespace("delete_namespace")], lookedUpFirst: ["namespace"] },

  "permissions.createPermission": { needs: [rbac("create_permission")] },
  "permissions.getPermission": { needs: [rbac("read_permission")] },
  "permissions.listPermissions": { needs: [rbac("read_permission")] },
  "permissions.updatePermission": { needs: [rbac("update_permission")] },
  "permissions.deletePermission": { needs: [rbac("delete_permission")] },
  "permissions.createRole": {
    needs: [rbac("create_role")],
    also: {
      permissions: [rbac("add_permission_to_role")],
      newSlug: [rbac("add_permission_to_role"), rbac("create_permission")],
    },
  },
  "permissions.getRole": { needs: [rbac("read_role")] },
  "permissions.listRoles": { needs: [rbac("read_role")] },
  "permissions.updateRole": { needs: [rbac("update_role")], lookedUpFirst: ["role"] },
  "permissions.deleteRole": { needs: [rbac("delete_role")] },
  "permissions.setRolePermissions": {
    needs: [rbac("add_permission_to_role"), rbac("remove_permission_from_role")],
    also: { newSlug: [rbac("create_permission")] },
  },

  "analytics.getVerifications": { needs: [api("read_analytics")], narrows: true, strangersLearnNoId: true },
  "analytics.getRatelimits": { needs: [namespace("read_analytics")], narrows: true, strangersLearnNoId: true },

  "policies.getPolicy": { needs: [api("read_api")], lookedUpFirst: ["policyId", "apiId", "manager"] },
  // The permission is required for the API of each returned policy.
  "policies.listPolicies": {
    needs: [],
    also: { always: [api("read_api")], ofAllApis: [api("read_api")] },
    lookedUpFirst: ["apiId"],
  },
  "policies.listStatus": { needs: [], also: { always: [api("read_api")] } },

  "workspaces.getWorkspace": { needs: [] },

  "admin.listWorkspaces": { needs: ["installation.*.read_workspace"] },
  "admin.createWorkspace": { needs: ["installation.*.create_workspace"] },
  "admin.updateWorkspace": { needs: ["installation.*.update_workspace"] },
  "admin.getSettings": { needs: ["workspace.*.read_workspace"] },
  "admin.updateSettings": { needs: ["workspace.*.update_workspace"] },
  "admin.updateQueryLimits": { needs: ["installation.*.update_workspace"] },
  "admin.createRootKey": { needs: ["workspace.*.create_root_key"] },
  "admin.getRootKey": { needs: ["workspace.*.read_root_key"] },
  "admin.updateRootKey": { needs: ["workspace.*.update_root_key"] },
  "admin.rotateRootKey": { needs: ["workspace.*.create_root_key", "workspace.*.update_root_key"] },
  "admin.deleteRootKey": { needs: ["workspace.*.delete_root_key"] },
  "admin.listRootKeys": { needs: ["workspace.*.read_root_key"] },
  "admin.listApis": { needs: [api("read_api")], narrows: true, strangersLearnNoId: true },
  "admin.searchKeys": {
    needs: [api("read_key")],
    narrows: true,
    strangersLearnNoId: true,
    lookedUpFirst: ["apiId"],
  },
  "admin.getKeyDetails": { needs: [api("read_key")], lookedUpFirst: ["keyId"] },
  "admin.disableKeysOfOwner": {
    needs: [],
    also: { always: [api("update_key")], ofApi: [api("update_key")] },
    lookedUpFirst: ["apiId"],
    strangersLearnNoId: true,
  },
  "admin.startImport": { needs: [api("create_key")], lookedUpFirst: ["apiId"] },

  "managed.getObject": {
    needs: [],
    also: {
      always: [api("read_api")],
      policy: [api("read_api")],
      key: [api("read_key")],
      role: [rbac("read_role")],
      permission: [rbac("read_permission")],
      namespace: [namespace("read_namespace")],
      override: [namespace("read_override")],
    },
    lookedUpFirst: ["id"],
  },
  // The permission is required for each returned object.
  "managed.listDigests": {
    needs: [],
    also: {
      always: [rbac("read_role")],
      namespace: [namespace("read_namespace")],
      override: [namespace("read_override")],
    },
  },
  "managed.applyObject": {
    needs: [],
    also: {
      always: [rbac("read_role"), rbac("create_role"), rbac("add_permission_to_role")],
      newSlug: [rbac("read_role"), rbac("create_role"), rbac("add_permission_to_role"), rbac("create_permission")],
      changedRole: ["read_role", "update_role", "add_permission_to_role", "remove_permission_from_role"].map(rbac),
      dryRun: [rbac("read_role")],
      namespace: [namespace("read_namespace"), "ratelimit.*.create_namespace"],
      override: [namespace("read_override"), namespace("set_override")],
      movedOverride: ["read_override", "set_override", "delete_override"].map(namespace),
      key: [api("read_key"), api("create_key")],
      changedKey: [api("read_key"), api("update_key")],
      replacedKey: [api("read_key"), api("delete_key")],
      policy: [api("read_api"), "api.*.create_api", api("update_api")],
      sharedLimit: [api("read_api"), api("update_api")],
      changedPolicy: [api("read_api"), api("update_api")],
    },
  },
  "managed.deleteObject": {
    needs: [],
    also: {
      always: [rbac("read_role"), rbac("delete_role")],
      dryRun: [rbac("read_role")],
      namespace: [namespace("read_namespace"), namespace("delete_namespace")],
      override: [namespace("read_override"), namespace("delete_override")],
      policy: [api("read_api"), api("update_api")],
      key: [api("read_key"), api("delete_key")],
      withApi: [api("read_api"), api("update_api"), api("delete_api")],
    },
  },

  "admin.listPolicies": { needs: [workspace("read_pods")] },
  "admin.getPolicy": { needs: [workspace("read_pods")] },
  "admin.explainVerification": { needs: [workspace("explain")] },
  "admin.explainRequest": { needs: [workspace("explain")] },
  "admin.listPeople": { needs: [workspace("read_person")] },
  "admin.getPerson": { needs: [workspace("read_person")] },
  "admin.deleteSession": { needs: [workspace("delete_session")] },
  "admin.listSignInLinks": { needs: [workspace("read_person")] },
  "admin.createSignInLink": { needs: [workspace("create_sign_in_link")], grants: grantsOfPerson("viewer") },
  "admin.deleteSignInLink": { needs: [workspace("delete_session")] },
  "admin.getInstallation": { needs: ["installation.*.read_installation"] },
  "admin.listAudit": { needs: [workspace("read_audit")] },
  "admin.getIdentityDetails": { needs: ["identity.<identityId>.read_identity"], lookedUpFirst: ["identity"] },
  "admin.listRoles": { needs: [rbac("read_role")] },
  "admin.listPermissions": { needs: [rbac("read_permission")], also: { roleIds: [rbac("read_role")] } },
  "admin.listNamespaces": { needs: ["ratelimit.*.read_namespace"] },
  "admin.listOverrides": { needs: [namespace("read_override")], lookedUpFirst: ["namespace"] },
  "admin.explainOverride": { needs: [namespace("read_override")], lookedUpFirst: ["namespace"] },
  "admin.getUsage": {
    needs: [api("read_analytics")],
    narrows: true,
    strangersLearnNoId: true,
    lookedUpFirst: ["apiId"],
  },
  "admin.getUsageState": { needs: [workspace("read_workspace")] },
  "admin.getAnalyticsSchema": { needs: [workspace("read_workspace")] },
  "admin.getLatencies": { needs: [api("read_analytics")], narrows: true, strangersLearnNoId: true },
  "admin.resolveNames": {
    needs: [],
    also: { always: [api("read_key")], api: [api("read_api")], namespace: [namespace("read_namespace")] },
    narrows: true,
    strangersLearnNoId: true,
  },
};
