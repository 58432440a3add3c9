/*
 * Permissions of root keys: tuples `<type>.<id>.<action>`, compared as complete strings. Patterns are never matched, so a grant such as
 * `api.*.*` has no effect.
 */

const ACTIONS = {
  api: [
    "create_api",
    "read_api",
    "update_api",
    "delete_api",
    "create_key",
    "read_key",
    "update_key",
    "delete_key",
    "verify_key",
    "encrypt_key",
    "decrypt_key",
    "read_analytics",
  ],
  ratelimit: [
    "create_namespace",
    "read_namespace",
    "update_namespace",
    "delete_namespace",
    "limit",
    "set_override",
    "read_override",
    "delete_override",
    "list_overrides",
    "read_analytics",
  ],
  rbac: [
    "create_permission",
    "read_permission",
    "update_permission",
    "delete_permission",
    "create_role",
    "read_role",
    "update_role",
    "delete_role",
    "add_permission_to_key",
    "remove_permission_from_key",
    "add_role_to_key",
    "remove_role_from_key",
    "add_permission_to_role",
    "remove_permission_from_role",
  ],
  identity: ["create_identity", "read_identity", "update_identity", "delete_identity"],
  /** These actions apply to the workspace of the root key itself. */
  workspace: [
    "read_workspace",
    "update_workspace",
    "create_root_key",
    "read_root_key",
    "update_root_key",
    "delete_root_key",
    "read_audit",
    "read_pods",
    "explain",
    "read_person",
    "delete_session",
    "create_sign_in_link",
  ],
  /** These actions apply across all workspaces. */
  installation: ["create_workspace", "read_workspace", "update_workspace", "read_installation"],
} as const;

type Actions = typeof ACTIONS;
export type PermissionType = keyof Actions;
export type ActionOf<Type extends PermissionType> = Actions[Type][number];

/** A permission that a call can require a root key to have. */
export interface RootKeyPermission<Type extends PermissionType = PermissionType, Action extends string = string> {
  readonly type: Type;
  readonly action: Action;
  /** `<type>.*.<action>`, the tuple that covers every object. It is created once, because each request looks it up. */
  readonly tuple: `${Type}.*.${Action}`;
  /** Name of the input member with the id that can replace the `*`; absent if the tuple is valid only with `*`. */
  readonly orFor?: `${string}Id` | "environment";
}

const tupleFor = ({ type, action }: RootKeyPermission, id: string): string => `${type}.${id}.${action}`;

/**
 * Returns whether `held` contains the permission for the object with this id, or, if `id` is omitted, for every object. The id is ignored
 * if the permission is valid only with `*`.
 */
export function holdsPermission(
  permission: RootKeyPermission,
  id: string | undefined,
  held: ReadonlySet<string>,
): boolean {
  return tupleHeld(permission, id, held) !== undefined;
}

/** Returns the held tuple that makes `holdsPermission` return true, preferably the one with `*`; `undefined` if it returns false. */
export function tupleHeld(
  permission: RootKeyPermission,
  id: string | undefined,
  held: ReadonlySet<string>,
): string | undefined {
  if (held.has(permission.tuple)) return permission.tuple;
  if (permission.orFor === undefined || id === undefined) return undefined;
  const tuple = tupleFor(permission, id);
  return held.has(tuple) ? tuple : undefined;
}

/** Returns the tuples that would each be sufficient, joined with "or". The detail of a 403 response contains this text. */
export const enoughFor = (permission: RootKeyPermission, id: string | undefined): string =>
  permission.orFor === undefined || id === undefined
    ? permission.tuple
    : `${permission.tuple} or ${tupleFor(permission, id)}`;

/** Returns whether the permission is held for any object of its type: `api.*.verify_key`, or the same with an id. */
export function holdsForSome(permission: RootKeyPermission, held: ReadonlySet<string>): boolean {
  if (held.has(permission.tuple)) return true;
  for (const one of held) if (idIn(permission, one) !== undefined) return true;
  return false;
}

/** Returns the ids for which the permission is held individually, unordered; "all" if the tuple that covers every object is held. */
export function idsHeld(permission: RootKeyPermission, held: ReadonlySet<string>): "all" | readonly string[] {
  if (held.has(permission.tuple)) return "all";
  return [...held].map((one) => idIn(permission, one)).filter((id) => id !== undefined);
}

/** Returns the id in a tuple of this type and action; `undefined` for any other tuple, and for a tuple with `*`. */
function idIn({ type, action }: RootKeyPermission, tuple: string): string | undefined {
  const head = `${type}.`;
  const tail = `.${action}`;
  if (!tuple.startsWith(head) || !tuple.endsWith(tail)) return undefined;
  // The id is one non-empty segment: `api..verify_key` and `api.a.b.verify_key` are not valid tuples.
  const id = tuple.slice(head.length, tuple.length - tail.length);
  return /^[A-Za-z0-9_]+$/.test(id) ? id : undefined;
}

/** Every `*` tuple of this version, including those that no procedure requires yet. A bootstrap root key holds them all. */
export const ALL_GRANTS: readonly string[] = Object.entries(ACTIONS).flatMap(([type, actions]) =>
  actions.map((action) => `${type}.*.${action}`),
);

/** All grants except those that apply beyond one workspace. */
export const WORKSPACE_GRANTS: readonly string[] = ALL_GRANTS.filter((tuple) => !tuple.startsWith("installation."));

/**
 * Returns the held tuple that allows its holder to delegate `tuple`: the same tuple or the form with `*`; `undefined` if neither is held.
 */
export function tupleCovering(tuple: string, held: ReadonlySet<string>): string | undefined {
  if (held.has(tuple)) return tuple;
  const [type, , action] = tuple.split(".");
  const star = `${type}.*.${action}`;
  return held.has(star) ? star : undefined;
}

/** Returns the members of `tuples` that `held` does not cover. The holder is not allowed to delegate them. */
export const beyond = (tuples: readonly string[], held: ReadonlySet<string>): readonly string[] =>
  tuples.filter((tuple) => tupleCovering(tuple, held) === undefined);

/** Returns a tuple in its stored form. `apis` is an alias of `api` that the v1 documentation uses. */
export const storedTuple = (tuple: string): string => tuple.replace(/^apis\./, "api.");

/**
 * Returns `undefined` if `tuple` is a permission that a root key of this version can use, otherwise an error message for the user. The id
 * is not looked up, because its object may be created later.
 */
export function rootKeyPermissionProblem(tuple: string): string | undefined {
  const parts = tuple.split(".");
  const [type = "", id = "", action = ""] = parts;
  if (parts.length !== 3) return "expected <type>.<id or *>.<action>";
  if (!Object.hasOwn(ACTIONS, type)) return `expected one of ${Object.keys(ACTIONS).join(", ")} before the first dot`;
  const actions: readonly string[] = ACTIONS[type as keyof typeof ACTIONS];
  if (!actions.includes(action)) return `expected one of ${actions.join(", ")} after the second dot`;
  if (id !== "*" && !/^[A-Za-z0-9_]{1,255}$/.test(id)) return "expected * or an id between the dots";
  return undefined;
}
