import type { Queryable } from "../../postgres/queryable.ts";
import type { LinkScope } from "./sign-in-links.ts";

/* Lets administrators end the sessions and links of other people. */

/** Ends all sessions of the people with this name, e-mail address or subject. Returns one row per ended session. */
export async function endSessionsNamed(
  tx: Queryable,
  { person, endedAt }: { person: string; endedAt: number },
): Promise<{ readonly id: string; readonly name: string }[]> {
  const text = `update sessions s
                   set ended_at = $2
                 where (s.name = $1 or s.email = $1 or s.subject = $1) and s.ended_at is null and s.expires_at >= $2
             returning s.id, s.name`;
  const { rows } = await tx.query<{ id: string; name: string }>({
    name: "end-sessions-named",
    text,
    values: [person, endedAt],
  });
  return rows;
}

/** Ends these sessions, which the transaction has locked. */
export async function endSessionsById(
  tx: Queryable,
  { sessionIds, endedAt }: { sessionIds: readonly string[]; endedAt: number },
): Promise<void> {
  const text = "update sessions set ended_at = $2 where id = any($1)";
  await tx.query({ name: "end-sessions-by-id", text, values: [sessionIds, endedAt] });
}

/**
 * Invalidates the links for the person with this name, and the links that these sessions created. Returns the number of invalidated links.
 */
export async function endLinksFor(
  tx: Queryable,
  {
    person,
    sessionIds,
    scope,
    endedAt,
  }: {
    /** `null` for no name. */
    person: string | null;
    sessionIds: readonly string[];
    /**
     * Restricts the invalidation by name to links with this scope; links that the sessions created are always invalidated. Default: no
     * restriction.
     */
    scope?: Omit<LinkScope, "nowMs">;
    endedAt: number;
  },
): Promise<number> {
  const text = `update sign_in_links l
                   set used_at = $4
                 where l.used_at is null and l.expires_at >= $4
                   and (l.created_by_session = any($2) or (l.name = $1
                        and ($3::text is null or l.workspace_id = $3 or ($5 and l.workspace_id is null))))`;
  const values = [person, sessionIds, scope?.workspaceId ?? null, endedAt, scope?.includesAll ?? true];
  const { rowCount } = await tx.query({ name: "end-links-for", text, values });
  return rowCount ?? 0;
}
