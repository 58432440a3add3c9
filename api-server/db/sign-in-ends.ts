import type { Queryable } from "../../postgres/queryable.ts";

/* Ends sessions and links of other people, for administrators. */

/** Ends all sessions of the people with this name, e-mail address or subject. Returns these people. */
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

/** Invalidates the links for this name. Returns their number. */
export async function endLinksFor(
  tx: Queryable,
  { person, endedAt }: { person: string; endedAt: number },
): Promise<number> {
  const text = `update sign_in_links l
                   set used_at = $2
                 where l.name = $1 and l.used_at is null and l.expires_at >= $2`;
  const { rowCount } = await tx.query({ name: "end-links-for", text, values: [person, endedAt] });
  return rowCount ?? 0;
}
