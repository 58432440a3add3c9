import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import pg from "pg";
import { partitionAt } from "../../analytics/postgres/partition-plan.ts";
import { createPartition, listPartitions } from "../../analytics/postgres/partitions.ts";
import { createPool } from "../../postgres/pool.ts";
import { checkUsage } from "./check-usage.ts";
import { seedKeys } from "./seed.ts";
import { makeKinds, SEEDED_TABLES, seedDay, seedMonths } from "./seed-usage-rows.ts";
import { type Usage, wholeDaysBefore } from "./usage-formula.ts";

/*
 * `npm run bench:seed-usage`: fills a database with verifications of the last days, as raw events and in every rollup. All rows are made by
 * the database, a day at a time and several days at once. Events are counted as small numbers before they become rows of text.
 */

export interface SeedOptions {
  readonly workspaceId: string;
  readonly events: number;
  readonly keys: number;
  readonly days: number;
  readonly progress?: (line: string) => void;
}

/** Returns what was made, with the id of a new API. Throws when a rollup differs from a count of the events. Needs a superuser. */
export async function seedUsage(databaseUrl: string, options: SeedOptions): Promise<Usage> {
  const { workspaceId, events, keys, days: dayCount, progress = () => {} } = options;
  const nowMs = Date.now();
  const usage: Usage = {
    workspaceId,
    apiId: await seedKeys(databaseUrl, { workspaceId, count: keys }),
    keys,
    eventsPerDay: Math.ceil(events / dayCount),
    days: wholeDaysBefore(nowMs, dayCount),
  };
  await createPartitions(databaseUrl, [...usage.days, nowMs]);
  const sessions = await Promise.all(
    Array.from({ length: Math.min(4, availableParallelism()) }, () => openSession(databaseUrl)),
  );
  const inParallel = async <Item>(items: readonly Item[], work: (db: pg.Client, item: Item) => Promise<unknown>) => {
    const left = [...items];
    await Promise.all(
      sessions.map(async (db) => {
        for (let item = left.shift(); item !== undefined; item = left.shift()) await work(db, item);
      }),
    );
  };
  try {
    const [first] = sessions;
    if (first === undefined) throw new Error("no connection");
    await makeKinds(first, usage);
    let done = 0;
    await inParallel([...usage.days.keys()], async (db, day) => {
      await seedDay(db, usage, day);
      done += 1;
      progress(`${done} of ${dayCount} days`);
    });
    await seedMonths(first, usage);
    progress("analysing");
    // Partitions alone, as autovacuum does, which would otherwise begin with it in the middle of a measurement.
    await inParallel(await seededPartitions(first, usage), (db, table) => db.query(`vacuum (analyze) ${table}`));
    progress(await checkUsage(first, usage));
    return usage;
  } finally {
    await Promise.all(sessions.map((db) => db.end()));
  }
}

async function createPartitions(databaseUrl: string, instants: readonly number[]): Promise<void> {
  const pool = createPool(databaseUrl, { connectionsMax: 1, responseMsMax: 600_000 });
  try {
    const there = new Set((await listPartitions(pool)).map(({ name }) => name));
    for (const partition of SEEDED_TABLES.flatMap((table) => instants.map((ms) => partitionAt(table, ms)))) {
      if (!there.has(partition.name)) await createPartition(pool, partition);
      there.add(partition.name);
    }
  } finally {
    await pool.end();
  }
}

async function openSession(databaseUrl: string): Promise<pg.Client> {
  const db = new pg.Client({ connectionString: databaseUrl });
  await db.connect();
  await db.query(
    "set synchronous_commit = off; set work_mem = '256MB'; set maintenance_work_mem = '256MB'; set jit = off; set timezone = 'UTC'",
  );
  return db;
}

/** The largest first, so that those who share the work end at the same time. */
async function seededPartitions(db: pg.Client, { days }: Usage): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>(
    "select name from unnest($1::text[]) as p (name) order by pg_relation_size(name::regclass) desc",
    [[...new Set(SEEDED_TABLES.flatMap((table) => days.map((ms) => partitionAt(table, ms).name)))]],
  );
  return rows.map(({ name }) => name);
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      "database-url": { type: "string", default: process.env.DATABASE_URL ?? "" },
      workspace: { type: "string", default: "" },
      events: { type: "string", default: "10000000" },
      keys: { type: "string", default: "10000" },
      days: { type: "string", default: "30" },
    },
  });
  const [events, keys, days] = [values.events, values.keys, values.days].map(Number);
  if (values["database-url"] === "" || values.workspace === "" || !(events && keys && days)) {
    console.error(
      "npm run bench:seed-usage -- --workspace ID [--database-url URL] [--events 10000000] [--keys 10000] [--days 30]\n\n" +
        "Makes an API with so many keys and verifications of them, in a database that was migrated.",
    );
    process.exit(2);
  }
  const startedAt = performance.now();
  const progress = (line: string) =>
    console.error(`  ${((performance.now() - startedAt) / 1000).toFixed(1)} s: ${line}`);
  const options = { workspaceId: values.workspace, events, keys, days, progress };
  const { apiId } = await seedUsage(values["database-url"], options);
  console.log(`${events} verifications in ${((performance.now() - startedAt) / 1000).toFixed(1)} s: API ${apiId}`);
}
