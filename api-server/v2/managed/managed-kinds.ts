import * as z from "zod";
import type { ErrorKind, PublicError } from "../../../core/errors.ts";
import { MANAGER } from "../../../core/manifests/manager.ts";
import { MANAGED } from "../../domain/managed/things.ts";
import { onApi, onNamespace, onRbac } from "../../needed-permissions.ts";
import { findManager, MANAGED_KINDS, type ManagerRows, type ObjectRef } from "../../store/managed-objects.ts";
import type { Queryable } from "../../store/queryable.ts";

/* What managed.* needs for each kind of object: how to read it, who may read it, and its 404. */

export const ManagedKind = z.enum(MANAGED_KINDS);
export type ManagedKind = z.output<typeof ManagedKind>;

/** The kinds of which a manager has at most one object. */
export const ClaimedKind = ManagedKind.exclude(["key"]);
export type ClaimedKind = z.output<typeof ClaimedKind>;

export const Manager = z
  .string()
  .max(1015)
  .regex(MANAGER)
  .describe("`<cluster>/<kind>/<namespace>/<name>` of a manifest.")
  .meta({ examples: ["main/Role/shop/editor"] });

export const Digest = z
  .string()
  .describe(
    "Changes with anything that a manifest determines of the object; opaque, and compared only with others of one api-server.",
  )
  .meta({ examples: ["5d41402abc4b2a76b9719d911017c592ae2b1f9c0d8e7f6a5b4c3d2e1f0a9b8c"] });

export const CLAIMED_NEEDED = {
  readApi: onApi("read_api", "for kind `api` or `policy`"),
  readRole: onRbac("read_role", "for kind `role`"),
  readPermission: onRbac("read_permission", "for kind `permission`"),
  readNamespace: onNamespace("read_namespace", "for kind `namespace`"),
  readOverride: onNamespace("read_override", "for kind `override`"),
};
export const KEY_NEEDED = { readKey: onApi("read_key", "for kind `key`") };

/** The permission that is needed to learn of an object: that for reading it. */
export const TO_LEARN_OF = {
  api: CLAIMED_NEEDED.readApi,
  role: CLAIMED_NEEDED.readRole,
  permission: CLAIMED_NEEDED.readPermission,
  namespace: CLAIMED_NEEDED.readNamespace,
  override: CLAIMED_NEEDED.readOverride,
  key: KEY_NEEDED.readKey,
  policy: CLAIMED_NEEDED.readApi,
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
  /** The id for the permission to read it; undefined where the permission has no form with an id. */
  readonly permissionId: string | undefined;
  /** Only for an override. */
  readonly async?: boolean;
  readonly namespaceId?: string;
}

/** By its id; undefined when no live object has it. */
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

/** `which` is the id or name in the request. */
export const managedNotFound = (kind: ManagedKind, which: string): PublicError => MANAGED[kind].notFound(which);
