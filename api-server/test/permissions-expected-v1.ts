import type { Expected } from "./permissions-expected.ts";

/* Permissions that each v1 procedure requires, in the form of `permissions-expected.ts`. */

const api = (action: string) => `api.<apiId>.${action}`;
const rbac = (action: string) => `rbac.*.${action}`;
const namespace = (action: string) => `ratelimit.<namespaceId>.${action}`;

/** If the root key has the permission for no namespace at all, v1 rejects the call before it looks up the namespace. */
const STRANGERS_LEARN_NO_NAMESPACE = { strangersLearnNoId: true } as const;

export const V1_EXPECTED: Readonly<Record<string, Expected>> = {
  "v1/liveness": { needs: [] },

  // apis
  "v1/apis.createApi": { needs: ["api.*.create_api"] },
  "v1/apis.getApi": { needs: [api("read_api")] },
  "v1/apis.listKeys": {
    needs: [api("read_key"), api("read_api")],
    also: { decrypt: [api("decrypt_key")] },
    refusedAsUnauthorized: [api("decrypt_key")],
  },
  "v1/apis.deleteApi": { needs: [api("delete_api")] },
  "v1/apis.deleteKeys": { needs: [api("delete_key")] },

  // keys
  "v1/keys.createKey": {
    needs: [api("create_key")],
    also: {
      recoverable: [api("encrypt_key")],
      newRole: [rbac("create_role")],
      newSlug: [rbac("create_permission")],
    },
  },
  "v1/keys.getKey": {
    needs: [api("read_key")],
    also: { decrypt: [api("decrypt_key")] },
    refusedAsUnauthorized: [api("decrypt_key")],
    lookedUpFirst: ["keyId"],
  },
  "v1/keys.whoami": { needs: [api("read_key")], lookedUpFirst: ["key"] },
  "v1/keys.updateKey": {
    needs: [api("update_key")],
    also: {
      roles: [rbac("add_role_to_key")],
      newRole: [rbac("add_role_to_key"), rbac("create_role")],
      permissions: [rbac("add_permission_to_key")],
      newSlug: [rbac("add_permission_to_key"), rbac("create_permission")],
    },
    lookedUpFirst: ["keyId"],
  },
  "v1/keys.updateRemaining": { needs: [api("update_key")], lookedUpFirst: ["keyId"] },
  "v1/keys.deleteKey": { needs: [api("delete_key")], lookedUpFirst: ["keyId"] },
  "v1/keys.verifyKey": { needs: [] },
  "v1/keys.addPermissions": {
    needs: [rbac("add_permission_to_key")],
    also: { newSlug: [rbac("create_permission")] },
    refusedAsUnauthorized: [rbac("create_permission")],
  },
  "v1/keys.removePermissions": { needs: [rbac("remove_permission_from_key")] },
  "v1/keys.setPermissions": {
    needs: [rbac("add_permission_to_key")],
    also: { newSlug: [rbac("create_permission")] },
  },
  "v1/keys.addRoles": {
    needs: [rbac("add_role_to_key")],
    also: { newRole: [rbac("create_role")] },
    orElse: { [rbac("create_role")]: rbac("create_permission") },
    refusedAsUnauthorized: [rbac("create_role")],
  },
  "v1/keys.removeRoles": { needs: [rbac("remove_role_from_key")] },
  "v1/keys.setRoles": { needs: [rbac("add_role_to_key")], also: { newRole: [rbac("create_role")] } },

  // ratelimits
  "v1/ratelimits.limit": {
    needs: [namespace("limit")],
    also: { newNamespace: ["ratelimit.*.create_namespace"] },
    refusedAsNotFound: ["ratelimit.*.create_namespace"],
    lookedUpFirst: ["namespace"],
  },
  "v1/ratelimits.setOverride": { needs: [namespace("set_override")], ...STRANGERS_LEARN_NO_NAMESPACE },
  "v1/ratelimits.getOverride": { needs: [namespace("read_override")], ...STRANGERS_LEARN_NO_NAMESPACE },
  "v1/ratelimits.listOverrides": { needs: [namespace("read_override")], ...STRANGERS_LEARN_NO_NAMESPACE },
  "v1/ratelimits.deleteOverride": { needs: [namespace("delete_override")], ...STRANGERS_LEARN_NO_NAMESPACE },

  // identities
  "v1/identities.createIdentity": { needs: ["identity.*.create_identity"] },
  "v1/identities.getIdentity": {
    needs: ["identity.<identityId>.read_identity"],
    lookedUpFirst: ["identityId", "externalId"],
  },
  "v1/identities.listIdentities": { needs: ["identity.<environment>.read_identity"] },
  "v1/identities.updateIdentity": { needs: ["identity.*.update_identity"] },
  "v1/identities.deleteIdentity": { needs: ["identity.<identityId>.delete_identity"] },

  // permissions
  "v1/permissions.createPermission": { needs: [rbac("create_permission")] },
  "v1/permissions.getPermission": { needs: [rbac("read_permission")] },
  "v1/permissions.listPermissions": { needs: [rbac("read_permission")] },
  "v1/permissions.deletePermission": { needs: [rbac("delete_permission")] },
  "v1/permissions.createRole": { needs: [rbac("create_role")] },
  "v1/permissions.getRole": { needs: [rbac("read_role")] },
  "v1/permissions.listRoles": { needs: [rbac("read_role")] },
  "v1/permissions.deleteRole": { needs: [rbac("delete_role")] },

  // analytics
  "v1/analytics.getVerifications": { needs: [api("read_api")] },
  "v1/keys.getVerifications": { needs: [api("read_key")], lookedUpFirst: ["keyId", "ownerId"] },

  // migrations
  "v1/migrations.createKeys": { needs: [api("create_key")] },
  "v1/migrations.enqueueKeys": { needs: [api("create_key")], also: { plaintext: [api("encrypt_key")] } },

  // unversioned paths
  "v1/keys": { needs: [api("create_key")] },
  "v1/apis/:apiId/keys": { needs: [api("read_key"), api("read_api")] },
  "v1/keys/verify": { needs: [] },
};
