import { PublicError } from "../../../core/errors.ts";
import {
  type Assignment,
  administersAll,
  isInstallationAdmin,
  roleIn,
  textsNaming,
} from "../../../core/sessions/assignments.ts";
import type { Queryable } from "../../../postgres/queryable.ts";
import { findSessionById, lockSessionsOfPerson, type OpenSessions, type PersonSessionRow } from "../../db/people.ts";
import { assignmentsOf } from "../../db/sessions.ts";
import { endLinksFor, endSessionsById } from "../../db/sign-in-ends.ts";
import { inTransaction } from "../../db/transaction.ts";
import { findWorkspace, listEnterable } from "../../db/workspaces.ts";
import type { Caller } from "../actor.ts";
import type { PeopleDeps, ReadDeps } from "../deps.ts";
import { type Administrator, insertAdministration } from "./administrator.ts";
import { LINK_ISSUER } from "./sign-in-links.ts";

/*
 * People with a role in a workspace, for its admins. A person is known only by open sessions, and each session is judged on its own: two
 * people with links for the same name, in different workspaces, do not see each other's sessions, although they count as one person.
 *
 * A caller may end a session only as an admin of every workspace in which the session gives a role. Otherwise admins of one workspace could
 * lock people out of other workspaces, and the admins of all workspaces out of the installation.
 */

type RolesDeps = ReadDeps & Pick<PeopleDeps, "rolesOfGroups" | "sessionIdleMs" | "nowMs">;

/** A workspace and the data that determines who has a role there. */
export interface PeopleScope {
  readonly workspace: { readonly id: string; readonly name: string };
  readonly open: OpenSessions;
}

/** Returns the scope of the caller's workspace. */
export async function peopleScopeOf({ caller, deps }: { caller: Caller; deps: RolesDeps }): Promise<PeopleScope> {
  const { db, rolesOfGroups, sessionIdleMs, nowMs } = deps;
  const workspace = await findWorkspace(db, { workspace: caller.workspaceId });
  if (workspace === undefined) throw new Error(`workspace ${caller.workspaceId} was deleted meanwhile`);
  const now = nowMs();
  const groups = rolesOfGroups.names().filter((group) => roleIn(rolesOfGroups([group]), workspace) !== undefined);
  return {
    workspace,
    open: { nowMs: now, seenSince: now - sessionIdleMs, places: textsNaming(workspace), groups },
  };
}

/**
 * Returns the workspaces that a caller administers. A root key counts as an admin of its own workspace, because it holds the permission to
 * end sessions.
 */
export const authorityOf = ({ session, workspaceId }: Caller): readonly Assignment[] =>
  session?.assignments ?? [{ workspace: workspaceId, role: "admin" }];

/** Whether the caller is a person who administers all workspaces. */
export const isAdminOfAll = ({ session }: Caller): boolean =>
  session !== undefined && isInstallationAdmin(session.assignments);

/** Returns the ids of the given sessions that the caller is not allowed to end. */
export async function findSessionsBeyond(
  db: Queryable,
  { caller, deps }: { caller: Caller; deps: Pick<PeopleDeps, "rolesOfGroups"> },
  sessions: readonly PersonSessionRow[],
): Promise<ReadonlySet<string>> {
  const assigned = sessions.map((session) => ({ id: session.id, of: assignmentsOf(session, deps) }));
  const named = new Set(assigned.flatMap(({ of }) => of.map(({ workspace }) => workspace)));
  // The same text can be the id of one workspace and the name of another, so one text can match two workspaces.
  const workspaces = await listEnterable(db, { named: [...named], rowsMax: 2 * named.size });
  const authority = authorityOf(caller);
  return new Set(assigned.filter(({ of }) => !administersAll(authority, of, workspaces)).map(({ id }) => id));
}

/** Returns the session with this id, open or ended, if it gives its person a role in the workspace. */
export async function findPersonBySession(
  db: Queryable,
  { workspace, deps, sessionId }: Pick<PeopleScope, "workspace"> & { deps: RolesDeps; sessionId: string },
): Promise<PersonSessionRow | undefined> {
  const session = await findSessionById(db, { sessionId });
  if (session === undefined || roleIn(assignmentsOf(session, deps), workspace) === undefined) return undefined;
  return session;
}

/** Number of sessions that are ended at a time. */
const BATCH = 500;
/** Maximum number of sessions that one audit log row lists, to keep it readable. */
const SESSIONS_NAMED = 20;

export interface EndedSessions {
  readonly sessions: number;
  /** Number of unused links that were invalidated as well: those that the sessions created and, with `everywhere`, those for the person. */
  readonly links: number;
}

/**
 * Ends a session or, with `everywhere`, all sessions of the same person that give a role in the workspace. Takes effect with the next call.
 * Returns `undefined` if no such session is open. Throws PublicError 403, and ends no session, if the caller is not allowed to end one of
 * them.
 */
export async function endSessionsOfPerson(
  administrator: Administrator,
  { caller, deps }: { caller: Caller; deps: RolesDeps },
  { sessionId, everywhere }: { sessionId: string; everywhere: boolean },
): Promise<EndedSessions | undefined> {
  const { workspace, open } = await peopleScopeOf({ caller, deps });
  return inTransaction(administrator, async (tx) => {
    const person = await findPersonBySession(tx, { workspace, deps, sessionId });
    if (person === undefined) return undefined;
    const { issuer, subject, name } = person;
    const endedAt = administrator.nowMs();
    const which = { ...open, issuer, subject, sessionId: everywhere ? null : sessionId, rowsMax: BATCH };
    const ended: string[] = [];
    for (;;) {
      const rows = await lockSessionsOfPerson(tx, which);
      if (rows.length === 0) break;
      const beyond = await findSessionsBeyond(tx, { caller, deps }, rows);
      if (beyond.size > 0) throw beyondCaller(name);
      const sessionIds = rows.map(({ id }) => id);
      await endSessionsById(tx, { sessionIds, endedAt });
      ended.push(...sessionIds);
    }
    if (ended.length === 0) return undefined;
    const links = await endLinksFor(tx, {
      person: everywhere && issuer === LINK_ISSUER ? subject : null,
      scope: { workspaceId: workspace.id, includesAll: isAdminOfAll(caller) },
      sessionIds: ended,
      endedAt,
    });
    await insertAdministration(tx, administrator, workspace.id, [
      {
        event: "session.delete",
        description: `Signed ${name} out of ${ended.length} sessions; ${links} links ended`,
        targets: ended.slice(0, SESSIONS_NAMED).map((id) => ({ type: "session", id, name })),
      },
    ]);
    return { sessions: ended.length, links };
  });
}

const beyondCaller = (name: string): PublicError =>
  new PublicError(
    "forbidden",
    `A session of ${name} also gives a role in a workspace that the caller does not administer. Ask an admin of all workspaces to end it.`,
  );
