import * as z from "zod";
import type { ErrorKind, PublicError } from "../../../core/errors.ts";
import { MANAGER } from "../../../core/manifests/manager.ts";
import type { Queryable } from "../../../postgres/queryable.ts";
import { findManager, MANAGED_KINDS, type ManagerRows, type ObjectRef } from "../../db/managed-objects.ts";
import { MANAGED } from "../../domain/managed/resources.ts";
import { onApi, onNamespace, onRbac } from "../../domain/permissions/required-permissions.ts";

/* Data of managed.* for each kind of object: how to read it, the required permission, and the 404 error. */

export const ManagedKind = z.enum(MANAGED_KINDS);
export type ManagedKind = z.output<typeof ManagedKind>;

/** Kinds with at most one object per manager. */
export const ClaimedKind = ManagedKind.exclude(["key"]);
export type ClaimedKind = z.output<typeof ClaimedKind>;

export const Manager = z
  .string()
  .max(1015)
  .regex(MANAGER)
  .describe("Manager: `<cluster>/<kind>/<namespace>/<name>` of a manifest.")
  .meta({ examples: ["main/Role/shop/editor"] });

export const Digest = z
  .string()
  .describe(
    "Changes with anything that a manifest determines of the object; opaque, and compared only with others of one api-server.",
  )
  .meta({ examples: ["5d41402abc4b2a76b9719d911017c592ae2b1f9c0d8e7f6a5b4c3d2e1f0a9b8c"] });

export const CLAIM_REQUIRED = {
  readApi: onApi("read_api", "for kind `api` or `policy`"),
  readRole: onRbac("read_role", "for kind `role`"),
  readPermission: onRbac("read_permission", "for kind `permission`"),
  readNamespace: onNamespace("read_namespace", "for kind `namespace`"),
  readOverride: onNamespace("read_override", "for kind `override`"),
};
export const KEY_REQUIRED = { readKey: onApi("read_key", "for kind `key`") };

/** Permission that is required to find out whether an object exists: the permission to read it. */
export const TO_LEARN_OF = {
  api: CLAIM_REQUIRED.readApi,
  role: CLAIM_REQUIRED.readRole,
  permission: CLAIM_REQUIRED.readPermission,
  namespace: CLAIM_REQUIRED.readNamespace,
  override: CLAIM_REQUIRED.readOverride,
  key: KEY_REQUIRED.readKey,
  policy: CLAIM_REQUIRED.readApi,
} as const satisfies Record<ManagedKind, unknown>;

export const CLAIMED_ERRORS = [
  "api_not_found",
  "role_not_found",
  "permission_not_found",
  "ratelimit_namespace_not_found",
  "ratelimit_override_not_found",
  "policy_not_found",
] as const satisfies readonly ErrorKind[];

export interface ManagedObject {
  readonly manager: string | null;
  /** Id for the permission to read the object; `undefined` if the permission has no form with an id. */
  readonly permissionId: string | undefined;
  /** Whether the limit is asynchronous; only for an override. */
  readonly async?: boolean;
  readonly namespaceId?: string;
}

/** Finds an object by its id; `undefined` if there is no such live object. */
export async function findManagedObject<Kind extends ManagedKind>(
  db: Queryable,
  kind: Kind,
  ref: ObjectRef,
): Promise<ManagedObject | undefined> {
  const row = await findManager(db, kind, ref);
  if (row === undefined) return undefined;
  const { manager } = row;
  const permissionId = PERMISSION_ID[kind](row, ref.id);
  return "async" in row
    ? { manager, permissionId, async: row.async, namespaceId: row.namespace_id }
    : { manager, permissionId };
}

const PERMISSION_ID: { readonly [Kind in ManagedKind]: (row: ManagerRows[Kind], id: string) => string | undefined } = {
  api: (_, id) => id,
  role: () => undefined,
  permission: () => undefined,
  namespace: (_, id) => id,
  override: ({ namespace_id }) => namespace_id,
  key: ({ api_id }) => api_id,
  policy: ({ api_id }) => api_id,
};

/** Returns the error for a missing object; `which` is the id or name in the request. */
export const managedNotFound = (kind: ManagedKind, which: string): PublicError => MANAGED[kind].notFound(which);
