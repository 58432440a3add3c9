import type { Client } from "pg";

/**
 * Runs `work` in a transaction in which the indexes of `tables` are not kept, and builds them at its end: what is inserted row by row costs
 * several times as much. Other writers of these tables wait. The definitions of the indexes stay as they are. Needs a superuser.
 */
export async function withoutIndexes(db: Client, tables: readonly string[], work: () => Promise<void>): Promise<void> {
  await db.query("begin");
  try {
    for (const table of tables) await db.query(`lock table ${table} in access exclusive mode`);
    // Rebuilding an index marks it as ready again.
    await db.query("update pg_index set indisready = false where indrelid = any($1::regclass[])", [tables]);
    await work();
    for (const table of tables) await db.query(`reindex table ${table}`);
    await db.query("commit");
  } catch (error) {
    await db.query("rollback");
    throw error;
  }
}
