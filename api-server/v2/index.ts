import type { AnyProcedure } from "../procedure.ts";
import { createRootKey } from "./admin/createRootKey.ts";
import { createSignInLink } from "./admin/createSignInLink.ts";
import { createWorkspace } from "./admin/createWorkspace.ts";
import { deleteRootKey } from "./admin/deleteRootKey.ts";
import { deleteSession } from "./admin/deleteSession.ts";
import { deleteSignInLink } from "./admin/deleteSignInLink.ts";
import { disableKeysOfOwner } from "./admin/disableKeysOfOwner.ts";
import { explainOverride } from "./admin/explainOverride.ts";
import { explainRequest } from "./admin/explainRequest.ts";
import { explainVerification } from "./admin/explainVerification.ts";
import { getAnalyticsSchema } from "./admin/getAnalyticsSchema.ts";
import { getIdentityDetails } from "./admin/getIdentityDetails.ts";
import { getInstallation } from "./admin/getInstallation.ts";
import { getKeyDetails } from "./admin/getKeyDetails.ts";
import { getLatencies } from "./admin/getLatencies.ts";
import { getPerson } from "./admin/getPerson.ts";
import { getPolicy as getPolicyWithPods } from "./admin/getPolicy.ts";
import { getRootKey } from "./admin/getRootKey.ts";
import { getSettings } from "./admin/getSettings.ts";
import { getUsage } from "./admin/getUsage.ts";
import { getUsageState } from "./admin/getUsageState.ts";
import { listApis } from "./admin/listApis.ts";
import { listAudit } from "./admin/listAudit.ts";
import { listNamespaces as listNamespacesInUse } from "./admin/listNamespaces.ts";
import { listOverrides as listOverridesInUse } from "./admin/listOverrides.ts";
import { listPeople } from "./admin/listPeople.ts";
import { listPermissions as listPermissionsInUse } from "./admin/listPermissions.ts";
import { listPolicies as listPoliciesWithPods } from "./admin/listPolicies.ts";
import { listRoles as listRolesInUse } from "./admin/listRoles.ts";
import { listRootKeys } from "./admin/listRootKeys.ts";
import { listSignInLinks } from "./admin/listSignInLinks.ts";
import { listWorkspaces } from "./admin/listWorkspaces.ts";
import { resolveNames } from "./admin/resolveNames.ts";
import { rotateRootKey } from "./admin/rotateRootKey.ts";
import { searchKeys } from "./admin/searchKeys.ts";
import { startImport } from "./admin/startImport.ts";
import { updateQueryLimits } from "./admin/updateQueryLimits.ts";
import { updateRootKey } from "./admin/updateRootKey.ts";
import { updateSettings } from "./admin/updateSettings.ts";
import { updateWorkspace } from "./admin/updateWorkspace.ts";
import { getRatelimits, getVerifications } from "./analytics/queries.ts";
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
import { createKey } from "./keys/createKey.ts";
import { deleteKey } from "./keys/deleteKey.ts";
import { explainVerification as explainKeyVerification } from "./keys/explainVerification.ts";
import { getKey } from "./keys/getKey.ts";
import { addPermissions, addRoles, removePermissions, removeRoles, setPermissions, setRoles } from "./keys/links.ts";
import { migrateKeys } from "./keys/migrateKeys.ts";
import { rerollKey } from "./keys/rerollKey.ts";
import { updateCredits } from "./keys/updateCredits.ts";
import { updateKey } from "./keys/updateKey.ts";
import { verifyKey } from "./keys/verifyKey.ts";
import { whoami } from "./keys/whoami.ts";
import { applyObject } from "./managed/applyObject.ts";
import { deleteObject } from "./managed/deleteObject.ts";
import { getObject } from "./managed/getObject.ts";
import { listDigests } from "./managed/listDigests.ts";
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
import { getPolicy } from "./policies/getPolicy.ts";
import { listPolicies } from "./policies/listPolicies.ts";
import { listStatus } from "./policies/listStatus.ts";
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
  explainKeyVerification,
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
  getPolicy,
  listPolicies,
  listStatus,
  listPoliciesWithPods,
  getPolicyWithPods,
  getInstallation,
  explainVerification,
  explainRequest,
  listDigests,
  applyObject,
  deleteObject,
  getObject,
  getWorkspace,
  listAudit,
  getIdentityDetails,
  listRolesInUse,
  listPermissionsInUse,
  listNamespacesInUse,
  listOverridesInUse,
  explainOverride,
  listApis,
  searchKeys,
  getKeyDetails,
  disableKeysOfOwner,
  startImport,
  listWorkspaces,
  createWorkspace,
  updateWorkspace,
  getSettings,
  updateSettings,
  updateQueryLimits,
  createRootKey,
  getRootKey,
  listRootKeys,
  getUsage,
  getUsageState,
  getAnalyticsSchema,
  getLatencies,
  resolveNames,
  updateRootKey,
  rotateRootKey,
  deleteRootKey,
  listPeople,
  getPerson,
  deleteSession,
  listSignInLinks,
  createSignInLink,
  deleteSignInLink,
];
