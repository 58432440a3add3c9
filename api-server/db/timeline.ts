import type { Queryable } from "../../postgres/queryable.ts";

/**
 * Identifies the history of this Postgres: its system identifier and its timeline, which changes with each promotion of a standby and each
 * point-in-time recovery. Returns `undefined` if the server does not provide it.
 */
export async function findTimeline(db: Queryable): Promise<string | undefined> {
  const text = `select (select system_identifier from pg_control_system()) || '/' ||
                       substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) as timeline`;
  try {
    return (await db.query<{ timeline: string }>(text)).rows[0]?.timeline;
  } catch (error) {
    // Some hosted Postgres servers lack these functions or deny access to them.
    if (isRefused(error)) return undefined;
    throw error;
  }
}

/** SQLSTATE classes: feature not supported, missing function or permission, wrong state (a standby). */
const isRefused = (error: unknown): boolean =>
  error instanceof Error && "code" in error && /^(0A|42|55)/.test(String(error.code));
