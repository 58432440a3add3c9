import type { Queryable } from "../postgres/queryable.ts";

/* Advisory locks for work outside of Postgres that only one process may do at a time. A lock ends with its transaction. */

const CLICKHOUSE_MIGRATION = 7_061_002;
/** First key of the advisory lock. The second key is a hash of the workspace id. */
const INGESTION = 7_053;

/** Waits for the lock. */
export async function lockClickhouseMigration(tx: Queryable): Promise<void> {
  await tx.query("select pg_advisory_xact_lock($1)", [CLICKHOUSE_MIGRATION]);
}

/**
 * Waits until no other process stores events of the workspace. A process that stays idle for `idleMsMax` presumably hangs, so it loses its
 * connection and thus the lock. Throws an error with `isWaitOver` after `lockMsMax`.
 */
export async function lockIngestion(
  tx: Queryable,
  { workspaceId, lockMsMax, idleMsMax }: { workspaceId: string; lockMsMax: number; idleMsMax: number },
): Promise<void> {
  await tx.query({
    name: "limit-ingestion",
    text: "select set_config('lock_timeout', $1, true), set_config('idle_in_transaction_session_timeout', $2, true)",
    values: [`${lockMsMax}ms`, `${idleMsMax}ms`],
  });
  await tx.query({
    name: "lock-ingestion",
    text: "select pg_advisory_xact_lock($1::int, hashtext($2))",
    values: [INGESTION, workspaceId],
  });
}
