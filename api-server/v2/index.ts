import type { AnyProcedure } from "../procedure.ts";
import { getRatelimits } from "./analytics/getRatelimits.ts";
import { getVerifications } from "./analytics/getVerifications.ts";
import { createApi } from "./apis/createApi.ts";
import { deleteApi } from "./apis/deleteApi.ts";
import { getApi } from "./apis/getApi.ts";
import { listKeys } from "./apis/listKeys.ts";
import { updateApi } from "./apis/updateApi.ts";
import { createIdentity } from "./identities/createIdentity.ts";
import { deleteIdentity } from "./identities/deleteIdentity.ts";
import { getIdentity } from "./identities/getIdentity.ts";
import { listIdentities } from "./identities/listIdentities.ts";
import { updateIdentity } from "./identities/updateIdentity.ts";
import { addPermissions } from "./keys/addPermissions.ts";
import { addRoles } from "./keys/addRoles.ts";
import { createKey } from "./keys/createKey.ts";
import { deleteKey } from "./keys/deleteKey.ts";
import { getKey } from "./keys/getKey.ts";
import { migrateKeys } from "./keys/migrateKeys.ts";
import { removePermissions } from "./keys/removePermissions.ts";
import { removeRoles } from "./keys/removeRoles.ts";
import { rerollKey } from "./keys/rerollKey.ts";
import { setPermissions } from "./keys/setPermissions.ts";
import { setRoles } from "./keys/setRoles.ts";
import { updateCredits } from "./keys/updateCredits.ts";
import { updateKey } from "./keys/updateKey.ts";
import { verifyKey } from "./keys/verifyKey.ts";
import { whoami } from "./keys/whoami.ts";
import { findObject } from "./managed/findObject.ts";
import { getObject } from "./managed/getObject.ts";
import { listDigests } from "./managed/listDigests.ts";
import { listKeys as listManagedKeys } from "./managed/listKeys.ts";
import { createPermission } from "./permissions/createPermission.ts";
import { createRole } from "./permissions/createRole.ts";
import { deletePermission } from "./permissions/deletePermission.ts";
import { deleteRole } from "./permissions/deleteRole.ts";
import { getPermission } from "./permissions/getPermission.ts";
import { getRole } from "./permissions/getRole.ts";
import { listPermissions } from "./permissions/listPermissions.ts";
import { listRoles } from "./permissions/listRoles.ts";
import { setRolePermissions } from "./permissions/setRolePermissions.ts";
import { updatePermission } from "./permissions/updatePermission.ts";
import { updateRole } from "./permissions/updateRole.ts";
import { deletePolicy } from "./policies/deletePolicy.ts";
import { getPolicy } from "./policies/getPolicy.ts";
import { listPolicies } from "./policies/listPolicies.ts";
import { listStatus } from "./policies/listStatus.ts";
import { setPolicy } from "./policies/setPolicy.ts";
import { createNamespace } from "./ratelimit/createNamespace.ts";
import { deleteNamespace } from "./ratelimit/deleteNamespace.ts";
import { deleteOverride } from "./ratelimit/deleteOverride.ts";
import { getNamespace } from "./ratelimit/getNamespace.ts";
import { getOverride } from "./ratelimit/getOverride.ts";
import { limit } from "./ratelimit/limit.ts";
import { listNamespaces } from "./ratelimit/listNamespaces.ts";
import { listOverrides } from "./ratelimit/listOverrides.ts";
import { multiLimit } from "./ratelimit/multiLimit.ts";
import { setOverride } from "./ratelimit/setOverride.ts";
import { getWorkspace } from "./workspaces/getWorkspace.ts";

/** Every procedure that is served under `/v2/`. */
export const procedures: readonly AnyProcedure[] = [
  createApi,
  getApi,
  updateApi,
  deleteApi,
  listKeys,
  createKey,
  getKey,
  whoami,
  updateKey,
  updateCredits,
  deleteKey,
  rerollKey,
  migrateKeys,
  verifyKey,
  addPermissions,
  removePermissions,
  setPermissions,
  addRoles,
  removeRoles,
  setRoles,
  createIdentity,
  getIdentity,
  listIdentities,
  updateIdentity,
  deleteIdentity,
  limit,
  multiLimit,
  setOverride,
  getOverride,
  listOverrides,
  deleteOverride,
  createNamespace,
  getNamespace,
  listNamespaces,
  deleteNamespace,
  createPermission,
  getPermission,
  listPermissions,
  updatePermission,
  deletePermission,
  createRole,
  getRole,
  listRoles,
  updateRole,
  deleteRole,
  setRolePermissions,
  getVerifications,
  getRatelimits,
  setPolicy,
  getPolicy,
  listPolicies,
  listStatus,
  listManagedKeys,
  listDigests,
  deletePolicy,
  findObject,
  getObject,
  getWorkspace,
];
