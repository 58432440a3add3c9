import type { Pool } from "pg";
import { takeLock, unlock, waitForLock } from "../../store/advisory-locks.ts";
import type { Queryable } from "../../store/queryable.ts";
import { withoutOutbox } from "../../store/unmarked-transaction.ts";
import { limitWaiting } from "../../store/waiting.ts";
import type { Partition } from "./partition-plan.ts";
import { STORED_TABLES } from "./tables.ts";

/*
 * Partitions come and go while events are stored and queries run for up to half a minute. So neither takes a lock that waits for
 * them: what waits for such a lock makes everything after it wait too. A partition is created as a table of its own and then attached;
 * it is detached concurrently and then dropped.
 */

const BOUNDS = { lockMsMax: 2_000, statementMsMax: 10_000, idleMsMax: 10_000 };
/** Detaching waits for the queries that use the table. */
const DETACH_MS_MAX = 45_000;

export interface FoundPartition {
  readonly name: string;
  /** What is not attached any more was left by a process that died while it dropped it. */
  readonly state: "attached" | "detaching" | "detached";
}

/** Every table that is named like a partition of ours. */
export async function listPartitions(db: Queryable): Promise<FoundPartition[]> {
  const text = `select c.relname as name,
                       case when i.inhrelid is null then 'detached'
                            when i.inhdetachpending then 'detaching'
                            else 'attached' end as state
                  from unnest($1::text[]) as parent (name)
                  join pg_class c on c.relname ~ ('^' || parent.name || '_[0-9]{6,8}$') and c.relkind = 'r'
                                 and c.relnamespace = current_schema()::regnamespace
                  left join pg_inherits i on i.inhrelid = c.oid
                 order by c.relname`;
  const values = [STORED_TABLES.map(({ name }) => name)];
  return (await db.query<FoundPartition>({ name: "list-partitions", text, values })).rows;
}

/** Does nothing when another process has made it. Names and dates are ours, not a caller's: they cannot be parameters. */
export async function createPartition(db: Pool, { table, name, from, to }: Partition): Promise<void> {
  await withoutOutbox(db, async (tx) => {
    await limitWaiting(tx, BOUNDS);
    await takeLock(tx, "partitions");
    if ((await listPartitions(tx)).some((found) => found.name === name)) return;
    await tx.query(`create table ${name} (like ${table.name} including all) with (fillfactor = ${table.fill})`);
    await tx.query(`alter table ${table.name} attach partition ${name} for values from ('${from}') to ('${to}')`);
  });
}

/**
 * In steps that are each complete by themselves: what is interrupted is found, and the next call continues it. Waits while another
 * process drops one, and does nothing when that was this one.
 */
export async function dropPartition(db: Pool, { table, name }: Partition): Promise<void> {
  const client = await db.connect();
  let failure: Error | undefined;
  try {
    await client.query(`set statement_timeout = ${DETACH_MS_MAX}`);
    await waitForLock(client, "dropPartitions");
    const state = (await listPartitions(client)).find((found) => found.name === name)?.state;
    if (state === "attached") await client.query(`alter table ${table.name} detach partition ${name} concurrently`);
    if (state === "detaching") await client.query(`alter table ${table.name} detach partition ${name} finalize`);
    await client.query(`drop table if exists ${name}`);
    await client.query("reset statement_timeout");
    await unlock(client, "dropPartitions");
  } catch (error) {
    failure = error instanceof Error ? error : new Error("dropping a partition", { cause: error });
    throw error;
  } finally {
    // A client that still holds the lock, or has another setting, is not given back to the pool.
    client.release(failure);
  }
}
