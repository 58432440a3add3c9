import * as z from "zod";
import type { ErrorKind, PublicError } from "../../../core/errors.ts";
import {
  apiPermission,
  type Requirement,
  ratelimitPermission,
  rbacPermission,
} from "../../../core/permissions/root-key.ts";
import {
  apiNotFound,
  keyNotFound,
  namespaceNotFound,
  overrideNotFound,
  permissionNotFound,
  policyNotFound,
  roleNotFound,
} from "../../domain/not-found.ts";
import { type NeededPermission, onApi, onNamespace, onRbac } from "../../needed-permissions.ts";
import {
  findManagedApi,
  findManagedKey,
  findManagedNamespace,
  findManagedOverride,
  findManagedPermission,
  findManagedPolicy,
  findManagedRole,
  type ManagedRow,
  type ObjectRef,
} from "../../store/managed-objects.ts";
import type { Queryable } from "../../store/queryable.ts";

/* What the procedures of managed.* know of each kind of object: how it is read, who may read it, and the 404 of it. */

export const ManagedKind = z.enum(["api", "role", "permission", "namespace", "override", "key", "policy"]);
export type ManagedKind = z.output<typeof ManagedKind>;

/** The kinds of which a manager has one object at most. */
export const ClaimedKind = ManagedKind.exclude(["key"]);
export type ClaimedKind = z.output<typeof ClaimedKind>;

export const CLAIMED_PERMISSIONS: readonly NeededPermission[] = [
  onApi("read_api", "for kind `api` or `policy`"),
  onRbac("read_role", "for kind `role`"),
  onRbac("read_permission", "for kind `permission`"),
  onNamespace("read_namespace", "for kind `namespace`"),
  onNamespace("read_override", "for kind `override`"),
];

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
  /** What the caller must be allowed in order to learn of it. */
  readonly required: Requirement;
  /** Of an override. */
  readonly async?: boolean;
  readonly namespaceId?: string;
}

/** By its id; undefined when there is no live one. */
export const findManagedObject = (db: Queryable, kind: ManagedKind, ref: ObjectRef) => FIND[kind](db, ref);

/** `which` is how the caller named it. */
export const managedNotFound = (kind: ManagedKind, which: string): PublicError => NOT_FOUND[kind](which);

/** Adds to a row what may be read only by a caller who may read the object itself. */
const allowing = <Row extends ManagedRow>(
  row: Row | undefined,
  required: (row: Row) => Requirement,
): ManagedObject | undefined => (row === undefined ? undefined : { manager: row.manager, required: required(row) });

const FIND: Readonly<Record<ManagedKind, (db: Queryable, ref: ObjectRef) => Promise<ManagedObject | undefined>>> = {
  api: async (db, ref) => allowing(await findManagedApi(db, ref), () => apiPermission("read_api", ref.id)),
  role: async (db, ref) => allowing(await findManagedRole(db, ref), () => rbacPermission("read_role")),
  permission: async (db, ref) =>
    allowing(await findManagedPermission(db, ref), () => rbacPermission("read_permission")),
  namespace: async (db, ref) =>
    allowing(await findManagedNamespace(db, ref), () => ratelimitPermission("read_namespace", ref.id)),
  override: async (db, ref) => {
    const row = await findManagedOverride(db, ref);
    const found = allowing(row, ({ namespace_id }) => ratelimitPermission("read_override", namespace_id));
    return found === undefined || row === undefined
      ? undefined
      : { ...found, async: row.async, namespaceId: row.namespace_id };
  },
  key: async (db, ref) => allowing(await findManagedKey(db, ref), ({ api_id }) => apiPermission("read_key", api_id)),
  policy: async (db, ref) =>
    allowing(await findManagedPolicy(db, ref), ({ api_id }) => apiPermission("read_api", api_id)),
};

const NOT_FOUND: Readonly<Record<ManagedKind, (which: string) => PublicError>> = {
  api: apiNotFound,
  role: roleNotFound,
  permission: permissionNotFound,
  namespace: namespaceNotFound,
  override: overrideNotFound,
  key: keyNotFound,
  policy: policyNotFound,
};
