import * as z from "zod";
import type { ErrorKind, PublicError } from "../../../core/errors.ts";
import {
  apiNotFound,
  keyNotFound,
  namespaceNotFound,
  overrideNotFound,
  permissionNotFound,
  policyNotFound,
  roleNotFound,
} from "../../domain/not-found.ts";
import { onApi, onNamespace, onRbac } from "../../needed-permissions.ts";
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

export const CLAIMED_NEEDED = {
  readApi: onApi("read_api", "for kind `api` or `policy`"),
  readRole: onRbac("read_role", "for kind `role`"),
  readPermission: onRbac("read_permission", "for kind `permission`"),
  readNamespace: onNamespace("read_namespace", "for kind `namespace`"),
  readOverride: onNamespace("read_override", "for kind `override`"),
};
export const KEY_NEEDED = { readKey: onApi("read_key", "for kind `key`") };

/** What the caller must be allowed in order to learn of an object: to read the object itself. */
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
  /** The id with which the permission to read it may be held; undefined where that has no form with an id. */
  readonly permissionId: string | undefined;
  /** Of an override. */
  readonly async?: boolean;
  readonly namespaceId?: string;
}

/** By its id; undefined when there is no live one. */
export const findManagedObject = (db: Queryable, kind: ManagedKind, ref: ObjectRef) => FIND[kind](db, ref);

/** `which` is how the caller named it. */
export const managedNotFound = (kind: ManagedKind, which: string): PublicError => NOT_FOUND[kind](which);

/** Adds to a row the id with which the permission to read the object may be held. */
const readableWith = <Row extends ManagedRow>(
  row: Row | undefined,
  permissionId: (row: Row) => string | undefined,
): ManagedObject | undefined =>
  row === undefined ? undefined : { manager: row.manager, permissionId: permissionId(row) };

const FIND: Readonly<Record<ManagedKind, (db: Queryable, ref: ObjectRef) => Promise<ManagedObject | undefined>>> = {
  api: async (db, ref) => readableWith(await findManagedApi(db, ref), () => ref.id),
  role: async (db, ref) => readableWith(await findManagedRole(db, ref), () => undefined),
  permission: async (db, ref) => readableWith(await findManagedPermission(db, ref), () => undefined),
  namespace: async (db, ref) => readableWith(await findManagedNamespace(db, ref), () => ref.id),
  override: async (db, ref) => {
    const row = await findManagedOverride(db, ref);
    const found = readableWith(row, ({ namespace_id }) => namespace_id);
    return found === undefined || row === undefined
      ? undefined
      : { ...found, async: row.async, namespaceId: row.namespace_id };
  },
  key: async (db, ref) => readableWith(await findManagedKey(db, ref), ({ api_id }) => api_id),
  policy: async (db, ref) => readableWith(await findManagedPolicy(db, ref), ({ api_id }) => api_id),
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
