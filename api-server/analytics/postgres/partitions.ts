import { DAY_MS, utcDate } from "../../../core/utc-date.ts";
import type { Queryable } from "../../store/queryable.ts";

/* One partition per UTC day for each table of events, so that old events are dropped with their partition, at once. */

const TABLES = ["verification_events", "ratelimit_events"] as const;
/** Two replicas that create or drop partitions at the same time would conflict; the second waits for the first. */
const LOCK = 7_053_003;

/** Creates the missing partitions of these dates (`YYYY-MM-DD`), in the caller's transaction. */
export async function ensurePartitions(tx: Queryable, dates: readonly string[]): Promise<void> {
  await tx.query("select pg_advisory_xact_lock($1)", [LOCK]);
  for (const date of dates) {
    if (!/^\d{4}-\d{2}-\d{2}$/.test(date)) throw new Error(`${JSON.stringify(date)} is not a date`);
    const next = utcDate(Date.parse(date) + DAY_MS);
    for (const table of TABLES) {
      // A name cannot be a parameter; both parts of this one are validated.
      await tx.query(
        `create table if not exists ${table}_${date.replaceAll("-", "")} partition of ${table} for values from ('${date}') to ('${next}')`,
      );
    }
  }
}

/** Drops every partition of days before `date`. Returns the names of those that were dropped. */
export async function dropPartitionsBefore(tx: Queryable, date: string): Promise<string[]> {
  await tx.query("select pg_advisory_xact_lock($1)", [LOCK]);
  const { rows } = await tx.query<{ name: string }>(
    `select c.relname as name
       from pg_inherits i
       join pg_class c on c.oid = i.inhrelid
       join pg_class parent on parent.oid = i.inhparent
      where parent.relname = any($1) and c.relname ~ '_[0-9]{8}$' and right(c.relname, 8) < $2`,
    [TABLES, date.replaceAll("-", "")],
  );
  for (const { name } of rows) await tx.query(`drop table ${name}`);
  return rows.map(({ name }) => name);
}
