import { ALL_GRANTS, WORKSPACE_GRANTS } from "./root-key.ts";

/* Permissions of a dashboard user, by role in a workspace: the same tuples that root keys hold. */

/** Roles of a dashboard user, in ascending order. */
export const PERSON_ROLES = ["viewer", "operator", "admin"] as const;
export type PersonRole = (typeof PERSON_ROLES)[number];

/** Permissions of viewers. The list is explicit, so that viewers do not get new actions by accident. */
const VIEWER: readonly string[] = [
  "api.*.read_api",
  "api.*.read_key",
  "api.*.read_analytics",
  "ratelimit.*.read_namespace",
  "ratelimit.*.read_override",
  "ratelimit.*.list_overrides",
  "ratelimit.*.read_analytics",
  "rbac.*.read_permission",
  "rbac.*.read_role",
  "identity.*.read_identity",
  "workspace.*.read_workspace",
  "workspace.*.read_root_key",
  "workspace.*.read_audit",
  "workspace.*.read_pods",
  "workspace.*.explain",
];

/**
 * Permissions that only admins have: reading plaintext keys, and deleting an API with its keys. The permissions to manage root keys and
 * settings (`workspace.…`) are also for admins only.
 */
const ADMINS_ALONE: readonly string[] = ["api.*.decrypt_key", "api.*.delete_api"];

const OPERATOR = WORKSPACE_GRANTS.filter(
  (tuple) => VIEWER.includes(tuple) || !(tuple.startsWith("workspace.") || ADMINS_ALONE.includes(tuple)),
);

const GRANTS: Readonly<Record<PersonRole, readonly string[]>> = {
  viewer: VIEWER,
  operator: OPERATOR,
  admin: WORKSPACE_GRANTS,
};

/** Returns the tuples of a role in one workspace. */
export const grantsOfPerson = (role: PersonRole): readonly string[] => GRANTS[role];

/** Tuples of an admin of all workspaces, in each workspace. */
export const GRANTS_OF_INSTALLATION_ADMIN = ALL_GRANTS;

/** Returns the role with more permissions. */
export const higherRole = (one: PersonRole, other: PersonRole): PersonRole =>
  PERSON_ROLES.indexOf(one) < PERSON_ROLES.indexOf(other) ? other : one;
