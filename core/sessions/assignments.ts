import { ID_PREFIXES } from "../ids.ts";
import {
  GRANTS_OF_INSTALLATION_ADMIN,
  grantsOfPerson,
  higherRole,
  type PersonRole,
} from "../permissions/person-roles.ts";

/** Names every workspace. */
export const EVERY_WORKSPACE = "*";

/** What a person is in a workspace: from a sign-in link, or from the groups that the provider names. */
export interface Assignment {
  /** Id or name of a workspace, or `*` for all. */
  readonly workspace: string;
  readonly role: PersonRole;
}

const ID = new RegExp(`^${ID_PREFIXES.workspace}_`);

/**
 * The highest role of these in one workspace; undefined when the person has none there. What looks like an id is no name, also where a workspace has it as
 * its name: else the people of one workspace could enter another one.
 */
export function roleIn(
  assignments: readonly Assignment[],
  { id, name }: { readonly id: string; readonly name: string },
): PersonRole | undefined {
  const names = ID.test(name) ? [EVERY_WORKSPACE, id] : [EVERY_WORKSPACE, id, name];
  return highest(assignments.filter(({ workspace }) => names.includes(workspace)));
}

/**
 * The tuples that a person holds in a workspace. Who is admin of all workspaces administers the installation, too; an admin of one does
 * not, however many there are.
 */
export function grantsIn(
  assignments: readonly Assignment[],
  workspace: { readonly id: string; readonly name: string },
): readonly string[] | undefined {
  if (isInstallationAdmin(assignments)) return GRANTS_OF_INSTALLATION_ADMIN;
  const role = roleIn(assignments, workspace);
  return role === undefined ? undefined : grantsOfPerson(role);
}

export const isInstallationAdmin = (assignments: readonly Assignment[]): boolean =>
  assignments.some(({ workspace, role }) => workspace === EVERY_WORKSPACE && role === "admin");

/** Which workspaces the person may enter: ids and names, or all. */
export function namedWorkspaces(assignments: readonly Assignment[]): "all" | readonly string[] {
  const named = assignments.map(({ workspace }) => workspace);
  return named.includes(EVERY_WORKSPACE) ? "all" : [...new Set(named)];
}

function highest(assignments: readonly Assignment[]): PersonRole | undefined {
  const [first, ...rest] = assignments.map(({ role }) => role);
  return first === undefined ? undefined : rest.reduce(higherRole, first);
}
