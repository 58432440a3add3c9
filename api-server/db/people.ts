import type { Assignment } from "../../core/sessions/assignments.ts";
import type { Queryable } from "../../postgres/queryable.ts";
import { containing } from "./pages.ts";
import type { PersonRef, SessionRow } from "./sessions.ts";

/* People with a role in a workspace, and their sessions. A person is stored only as part of a session. */

/** Selects the open sessions that give a role in a workspace. */
export interface OpenSessions {
  readonly nowMs: number;
  /** A session that was last seen before this time has ended. Unix ms. */
  readonly seenSince: number;
  /** Ids and names by which an assignment can refer to the workspace. */
  readonly places: readonly string[];
  /** Groups to which the roles file gives a role in the workspace. */
  readonly groups: readonly string[];
}

/**
 * SQL condition that selects open sessions. The parameters `$1` to `$4` are the members of `OpenSessions`. `granting` is materialized as a
 * set, so checking one group of a session takes one lookup.
 */
const GRANTING = "granting as materialized (select unnest($4::text[]) as name)";
const IS_OPEN = `s.ended_at is null and s.expires_at >= $1 and s.last_seen_at >= $2
                     and case s.signed_in_by
                           when 'link' then exists (select from jsonb_array_elements(s.roles) r where r ->> 'workspace' = any($3))
                           else exists (select from jsonb_array_elements_text(s.groups) g (name)
                                         where g.name in (select name from granting))
                         end`;

const valuesOf = ({ nowMs, seenSince, places, groups }: OpenSessions): unknown[] => [nowMs, seenSince, places, groups];

export interface PersonRow extends PersonRef {
  /** The newest open session. */
  readonly session_id: string;
  readonly name: string;
  readonly email: string | null;
  readonly signed_in_by: SessionRow["signed_in_by"];
  readonly link_made_by: string | null;
  /** Groups of the person with a role in the workspace, sorted. */
  readonly groups: string[];
  /** Roles in the workspace that sign-in links gave to the person. */
  readonly roles: Assignment[];
  /** Number of open sessions. */
  readonly sessions: number;
  readonly last_seen_at: number;
  /** Name by which the list is sorted. */
  readonly sort_name: string;
}

/** Position in the list of people: the sort name, the issuer and the subject. */
export type PersonPosition = readonly [sortName: string, issuer: string, subject: string];

/**
 * Returns the people with an open session that gives a role in the workspace, starting at a position, sorted by name. `search` is a
 * substring of name, e-mail address or subject, ignoring case; the empty string matches all.
 */
export async function pagePeople(
  db: Queryable,
  of: OpenSessions & { readonly search: string; readonly from: PersonPosition; readonly rowsMax: number },
): Promise<PersonRow[]> {
  const text = `with ${GRANTING},
                open as materialized (
                  select s.id, s.issuer, s.subject, s.groups, s.roles, s.created_at, s.last_seen_at
                    from sessions s
                   where ${IS_OPEN}
                ),
                people as (
                  select o.issuer, o.subject, (array_agg(o.id order by o.created_at desc, o.id))[1] as session_id,
                         count(*)::integer as sessions, max(o.last_seen_at) as last_seen_at
                    from open o
                   group by o.issuer, o.subject
                ),
                page as (
                  select p.*, n.name, n.email, n.signed_in_by, n.link_made_by, lower(n.name) as sort_name
                    from people p
                    join sessions n on n.id = p.session_id
                   where ($5 = '%%' or n.name ilike $5 or n.email ilike $5 or p.subject ilike $5)
                     and (lower(n.name), p.issuer, p.subject) >= ($6, $7, $8)
                   order by lower(n.name), p.issuer, p.subject
                   limit $9
                ),
                named as (
                  select o.issuer, o.subject, array_agg(distinct g.name order by g.name) as groups
                    from open o
                    join page p on p.issuer = o.issuer and p.subject = o.subject
                   cross join lateral jsonb_array_elements_text(o.groups) g (name)
                   where g.name in (select name from granting)
                   group by o.issuer, o.subject
                ),
                linked as (
                  select o.issuer, o.subject, jsonb_agg(distinct r.value) as roles
                    from open o
                    join page p on p.issuer = o.issuer and p.subject = o.subject
                   cross join lateral jsonb_array_elements(o.roles) r
                   group by o.issuer, o.subject
                )
                select p.*, coalesce(g.groups, '{}') as groups, coalesce(l.roles, '[]') as roles
                  from page p
                  left join named g on g.issuer = p.issuer and g.subject = p.subject
                  left join linked l on l.issuer = p.issuer and l.subject = p.subject
                 order by p.sort_name, p.issuer, p.subject`;
  const values = [...valuesOf(of), containing(of.search), ...of.from, of.rowsMax];
  return (await db.query<PersonRow>({ text, values })).rows;
}

/** A session with the columns that administrators can see. The token is not among them. */
export interface PersonSessionRow extends Omit<SessionRow, "ended_at"> {
  readonly link_made_by: string | null;
  readonly remote_ip: string | null;
  readonly user_agent: string | null;
}

const SESSION = `s.id, s.issuer, s.subject, s.name, s.email, s.signed_in_by, s.groups, s.roles, s.link_made_by, s.remote_ip,
                       s.user_agent, s.created_at, s.last_seen_at, s.expires_at`;

/** Finds a session by its id, including an ended one that is not removed yet. */
export async function findSessionById(
  db: Queryable,
  { sessionId }: { sessionId: string },
): Promise<PersonSessionRow | undefined> {
  const text = `select ${SESSION} from sessions s where s.id = $1`;
  const { rows } = await db.query<PersonSessionRow>({ name: "find-session-by-id", text, values: [sessionId] });
  return rows[0];
}

/** Returns the open sessions of a person that give a role in the workspace, the newest first. */
export async function listSessionsOfPerson(
  db: Queryable,
  of: OpenSessions & PersonRef & { readonly rowsMax: number },
): Promise<PersonSessionRow[]> {
  const text = `with ${GRANTING}
                select ${SESSION}
                  from sessions s
                 where ${IS_OPEN} and s.issuer = $5 and s.subject = $6
                 order by s.created_at desc, s.id
                 limit $7`;
  const values = [...valuesOf(of), of.issuer, of.subject, of.rowsMax];
  return (await db.query<PersonSessionRow>({ text, values })).rows;
}

/** Like `listSessionsOfPerson`, but also locks the sessions. With `sessionId`, returns and locks only that session. */
export async function lockSessionsOfPerson(
  tx: Queryable,
  of: OpenSessions & PersonRef & { readonly sessionId: string | null; readonly rowsMax: number },
): Promise<PersonSessionRow[]> {
  const text = `with ${GRANTING}
                select ${SESSION}
                  from sessions s
                 where ${IS_OPEN} and s.issuer = $5 and s.subject = $6 and ($7::text is null or s.id = $7)
                 order by s.id
                 limit $8
                   for update of s`;
  const values = [...valuesOf(of), of.issuer, of.subject, of.sessionId, of.rowsMax];
  return (await tx.query<PersonSessionRow>({ text, values })).rows;
}
