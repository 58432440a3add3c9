import { getVerifications } from "./analytics/getVerifications.ts";
import { createApi } from "./apis/createApi.ts";
import { deleteApi } from "./apis/deleteApi.ts";
import { deleteKeys } from "./apis/deleteKeys.ts";
import { getApi } from "./apis/getApi.ts";
import { listKeys } from "./apis/listKeys.ts";
import { createIdentity } from "./identities/createIdentity.ts";
import { deleteIdentity } from "./identities/deleteIdentity.ts";
import { getIdentity } from "./identities/getIdentity.ts";
import { listIdentities } from "./identities/listIdentities.ts";
import { updateIdentity } from "./identities/updateIdentity.ts";
import { createKey } from "./keys/createKey.ts";
import { deleteKey } from "./keys/deleteKey.ts";
import { getKey } from "./keys/getKey.ts";
import { getVerifications as getVerificationsOfKeys } from "./keys/getVerifications.ts";
import { addPermissions, addRoles, removePermissions, removeRoles, setPermissions, setRoles } from "./keys/links.ts";
import { updateKey } from "./keys/updateKey.ts";
import { updateRemaining } from "./keys/updateRemaining.ts";
import { verifyKey } from "./keys/verifyKey.ts";
import { whoami } from "./keys/whoami.ts";
import { liveness } from "./liveness.ts";
import { createKeys } from "./migrations/createKeys.ts";
import { enqueueKeys } from "./migrations/enqueueKeys.ts";
import { createPermission } from "./permissions/createPermission.ts";
import { createRole } from "./permissions/createRole.ts";
import { deletePermission } from "./permissions/deletePermission.ts";
import { deleteRole } from "./permissions/deleteRole.ts";
import { getPermission } from "./permissions/getPermission.ts";
import { getRole } from "./permissions/getRole.ts";
import { listPermissions } from "./permissions/listPermissions.ts";
import { listRoles } from "./permissions/listRoles.ts";
import type { AnyV1Procedure } from "./procedure.ts";
import { deleteOverride } from "./ratelimits/deleteOverride.ts";
import { getOverride } from "./ratelimits/getOverride.ts";
import { limit } from "./ratelimits/limit.ts";
import { listOverrides } from "./ratelimits/listOverrides.ts";
import { setOverride } from "./ratelimits/setOverride.ts";
import { createKey as createKeyLeftover } from "./unversioned/createKey.ts";
import { listKeys as listKeysLeftover } from "./unversioned/listKeys.ts";
import { verifyKey as verifyKeyLeftover } from "./unversioned/verifyKey.ts";

/** Every procedure that is served under `/v1/`. */
export const v1Procedures: readonly AnyV1Procedure[] = [
  liveness,

  // apis
  createApi,
  getApi,
  listKeys,
  deleteApi,
  deleteKeys,

  // keys
  createKey,
  getKey,
  whoami,
  updateKey,
  updateRemaining,
  deleteKey,
  verifyKey,
  addPermissions,
  removePermissions,
  setPermissions,
  addRoles,
  removeRoles,
  setRoles,

  // ratelimits
  limit,
  setOverride,
  getOverride,
  listOverrides,
  deleteOverride,

  // identities
  createIdentity,
  getIdentity,
  listIdentities,
  updateIdentity,
  deleteIdentity,

  // permissions
  createPermission,
  getPermission,
  listPermissions,
  deletePermission,
  createRole,
  getRole,
  listRoles,
  deleteRole,

  // analytics
  getVerifications,
  getVerificationsOfKeys,

  // migrations
  createKeys,
  enqueueKeys,

  // unversioned paths
  createKeyLeftover,
  listKeysLeftover,
  verifyKeyLeftover,
];
