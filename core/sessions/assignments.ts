import { ID_PREFIXES } from "../ids.ts";
import {
  GRANTS_OF_INSTALLATION_ADMIN,
  grantsOfPerson,
  higherRole,
  type PersonRole,
} from "../permissions/person-roles.ts";

/** Value of `workspace` in an assignment that applies to every workspace. */
export const EVERY_WORKSPACE = "*";

/** Role that a user has in a workspace. It comes from a sign-in link, or from the user's groups at the identity provider. */
export interface Assignment {
  /** Id or name of a workspace, or `*` for all. */
  readonly workspace: string;
  readonly role: PersonRole;
}

/** Returns the roles that the active roles file gives to groups of the identity provider. */
export interface RolesOfGroups {
  (groups: readonly string[]): readonly Assignment[];
  /** Returns all groups in the roles file. */
  readonly names: () => readonly string[];
}

/** Used without a roles file: groups have no roles. */
export const NO_ROLES: RolesOfGroups = Object.assign(() => [], { names: () => [] });

const ID = new RegExp(`^${ID_PREFIXES.workspace}_`);

interface NamedWorkspace {
  readonly id: string;
  readonly name: string;
}

/**
 * Returns the strings by which assignments can refer to a workspace. A string that looks like an id never counts as a name, even if a
 * workspace has that name: otherwise users of one workspace could enter another.
 */
export const textsNaming = ({ id, name }: NamedWorkspace): readonly string[] =>
  ID.test(name) ? [EVERY_WORKSPACE, id] : [EVERY_WORKSPACE, id, name];

/** Returns the highest role of these assignments in one workspace; `undefined` if they give no role in it. */
export function roleIn(assignments: readonly Assignment[], workspace: NamedWorkspace): PersonRole | undefined {
  const names = textsNaming(workspace);
  return highest(assignments.filter((assignment) => names.includes(assignment.workspace)));
}

/**
 * Returns the tuples that a user holds in a workspace. An admin of all workspaces administers the installation too. An admin of single
 * workspaces does not, even if these are all workspaces.
 */
export function grantsIn(assignments: readonly Assignment[], workspace: NamedWorkspace): readonly string[] | undefined {
  if (isInstallationAdmin(assignments)) return GRANTS_OF_INSTALLATION_ADMIN;
  const role = roleIn(assignments, workspace);
  return role === undefined ? undefined : grantsOfPerson(role);
}

export const isInstallationAdmin = (assignments: readonly Assignment[]): boolean =>
  assignments.some(({ workspace, role }) => workspace === EVERY_WORKSPACE && role === "admin");

/** Returns the ids and names of the workspaces that the user may enter; `all` if the user may enter every workspace. */
export function namedWorkspaces(assignments: readonly Assignment[]): "all" | readonly string[] {
  const named = assignments.map(({ workspace }) => workspace);
  return named.includes(EVERY_WORKSPACE) ? "all" : [...new Set(named)];
}

/**
 * Returns whether `authority` makes its holder an admin of every workspace in which the assignments give a role. `workspaces` are the
 * existing workspaces to which the assignments refer.
 */
export function administersAll(
  authority: readonly Assignment[],
  assignments: readonly Assignment[],
  workspaces: readonly NamedWorkspace[],
): boolean {
  if (isInstallationAdmin(authority)) return true;
  if (namedWorkspaces(assignments) === "all") return false;
  return workspaces.every((one) => roleIn(assignments, one) === undefined || roleIn(authority, one) === "admin");
}

function highest(assignments: readonly Assignment[]): PersonRole | undefined {
  const [first, ...rest] = assignments.map(({ role }) => role);
  return first === undefined ? undefined : rest.reduce(higherRole, first);
}
