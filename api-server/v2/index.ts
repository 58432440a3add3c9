import type { AnyProcedure } from "../procedure.ts";
import { createApi } from "./apis/createApi.ts";
import { deleteApi } from "./apis/deleteApi.ts";
import { getApi } from "./apis/getApi.ts";
import { listKeys } from "./apis/listKeys.ts";
import { updateApi } from "./apis/updateApi.ts";
import { createIdentity } from "./identities/createIdentity.ts";
import { getIdentity } from "./identities/getIdentity.ts";
import { createKey } from "./keys/createKey.ts";
import { deleteKey } from "./keys/deleteKey.ts";
import { getKey } from "./keys/getKey.ts";
import { updateKey } from "./keys/updateKey.ts";
import { verifyKey } from "./keys/verifyKey.ts";
import { getObject } from "./managed/getObject.ts";
import { createPermission } from "./permissions/createPermission.ts";
import { createRole } from "./permissions/createRole.ts";
import { deleteRole } from "./permissions/deleteRole.ts";
import { getRole } from "./permissions/getRole.ts";
import { setRolePermissions } from "./permissions/setRolePermissions.ts";
import { updateRole } from "./permissions/updateRole.ts";
import { deletePolicy } from "./policies/deletePolicy.ts";
import { getPolicy } from "./policies/getPolicy.ts";
import { listPolicies } from "./policies/listPolicies.ts";
import { setPolicy } from "./policies/setPolicy.ts";
import { createNamespace } from "./ratelimit/createNamespace.ts";
import { deleteNamespace } from "./ratelimit/deleteNamespace.ts";
import { deleteOverride } from "./ratelimit/deleteOverride.ts";
import { getNamespace } from "./ratelimit/getNamespace.ts";
import { getOverride } from "./ratelimit/getOverride.ts";
import { limit } from "./ratelimit/limit.ts";
import { listNamespaces } from "./ratelimit/listNamespaces.ts";
import { listOverrides } from "./ratelimit/listOverrides.ts";
import { setOverride } from "./ratelimit/setOverride.ts";

/** Every procedure that is served under `/v2/`. */
export const procedures: readonly AnyProcedure[] = [
  createApi,
  getApi,
  updateApi,
  deleteApi,
  listKeys,
  createKey,
  getKey,
  updateKey,
  deleteKey,
  verifyKey,
  createIdentity,
  getIdentity,
  limit,
  setOverride,
  getOverride,
  listOverrides,
  deleteOverride,
  createNamespace,
  getNamespace,
  listNamespaces,
  deleteNamespace,
  createPermission,
  createRole,
  getRole,
  updateRole,
  deleteRole,
  setRolePermissions,
  setPolicy,
  getPolicy,
  listPolicies,
  deletePolicy,
  getObject,
];
