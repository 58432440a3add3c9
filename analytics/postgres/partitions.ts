import type { Pool } from "pg";
import { takeLock, unlock, waitForLock } from "../../postgres/advisory-locks.ts";
import { limitWaiting } from "../../postgres/failures.ts";
import type { Queryable } from "../../postgres/queryable.ts";
import { withoutOutbox } from "../../postgres/unmarked-transaction.ts";
import type { Partition } from "./partition-plan.ts";
import { STORED_TABLES } from "./tables.ts";

/*
 * Creates and drops partitions while events are stored and queries run for up to 30 s. No step waits for an exclusive lock, because all
 * later statements would wait behind it. A new partition is created as a separate table and then attached; an old one is detached
 * concurrently and then dropped.
 */

const BOUNDS = { lockMsMax: 2_000, statementMsMax: 10_000, idleMsMax: 10_000 };
/** Timeout of detaching a partition, which waits for running queries on the table. */
const DETACH_MS_MAX = 45_000;

export interface FoundPartition {
  readonly name: string;
  /** State of the partition. `detached` means that a process crashed while it was dropping the partition. */
  readonly state: "attached" | "detaching" | "detached";
}

/** Returns all tables that have the name of a partition of this store. */
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

/**
 * Creates a partition. Does nothing if another process has created it. Names and dates are part of the SQL text, because DDL has no
 * parameters; they are generated and contain no caller input.
 */
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
 * Drops a partition in separate steps, so that the next call can resume after an interruption. Waits while another process drops a
 * partition. If that was this partition, does nothing more.
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
    // After a failure, the client may still have the lock or changed settings. It is then closed instead of returned to the pool.
    client.release(failure);
  }
}
