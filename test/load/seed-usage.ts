import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import pg from "pg";
import { partitionAt } from "../../api-server/analytics/postgres/partition-plan.ts";
import { createPartition, listPartitions } from "../../api-server/analytics/postgres/partitions.ts";
import { verificationDims } from "../../api-server/analytics/postgres/roll-up-text.ts";
import { STORED_TABLES } from "../../api-server/analytics/postgres/tables.ts";
import { createPool } from "../../api-server/store/pool.ts";
import { utcDate } from "../../core/utc-date.ts";
import { checkUsage } from "./check-usage.ts";
import { seedKeys } from "./seed.ts";
import { withoutIndexes } from "./unindexed.ts";
import { kindSql, type Usage, usageConstants, usageKinds, wholeDaysBefore } from "./usage-formula.ts";

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

const TABLES = STORED_TABLES.filter(({ of }) => of === "verifications");
const COLUMNS = ["key_space_id", "key_id", "identity_id", "external_id", "outcome", "source", "app_id", "tags"].join(
  ", ",
);

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
    await first.query(MONTHS, [workspaceId, utcDate(usage.days[0] ?? 0)]);
    await first.query("drop table seeded_kinds");
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
  const pool = createPool(databaseUrl, { connectionsMax: 1, answerMsMax: 600_000 });
  try {
    const there = new Set((await listPartitions(pool)).map(({ name }) => name));
    for (const partition of TABLES.flatMap((table) => instants.map((ms) => partitionAt(table, ms)))) {
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

/** The hash over all dimensions is computed once for each kind, not for each row. */
async function makeKinds(db: pg.Client, usage: Usage): Promise<void> {
  const { key_space_id, source, app_id } = usageConstants(usage);
  await db.query("drop table if exists seeded_kinds");
  await db.query(
    `create unlogged table seeded_kinds as
     select kind, ${COLUMNS}, ${verificationDims} as dims
       from (select k.*, $2::text as key_space_id, $3::text as source, $4::text as app_id
               from json_to_recordset($1) as k (kind int, key_id text, identity_id text, external_id text, outcome text, tags text[])) k`,
    [JSON.stringify(usageKinds(usage)), key_space_id, source, app_id],
  );
  await db.query("analyze seeded_kinds");
}

async function seedDay(db: pg.Client, usage: Usage, day: number): Promise<void> {
  const { workspaceId, keys, eventsPerDay } = usage;
  const dayMs = usage.days[day] ?? 0;
  const { api_id, region } = usageConstants(usage);
  const partition = (name: string) => {
    const table = TABLES.find((each) => each.name === name);
    if (table === undefined) throw new Error(`there is no table ${name}`);
    return partitionAt(table, dayMs).name;
  };
  const [raw, minute, hour] = ["verification_events", "verification_counts_minute", "verification_counts_hour"].map(
    partition,
  ) as [string, string, string];
  const from = `timestamp '${utcDate(dayMs)}'`;
  const kind = kindSql("g", keys, { and: (a, b) => `(${a} & ${b})`, div: (a, b) => `(${a} / ${b})` });
  await withoutIndexes(db, [raw, minute, hour], async () => {
    await db.query(
      `create temp table draft on commit drop as
       select g, ((g - $1::bigint) * 86400000 / $2::bigint)::int as ms, ${kind}::int as kind
         from generate_series($1::bigint, $1::bigint + $2::bigint - 1) g`,
      [day * eventsPerDay, eventsPerDay],
    );
    await db.query("analyze draft");
    await db.query(
      `insert into ${raw} (day, id, request_id, time, workspace_id, api_id, region, spent_credits, latency_ms, ${COLUMNS})
       select $1::date, 'ev_' || left(md5($2 || d.g), 24), 'req_' || left(md5(d.g::text), 24), $3::bigint + d.ms, $4, $2, $5, 1, 0.25, ${COLUMNS}
         from draft d join seeded_kinds k using (kind)`,
      [utcDate(dayMs), api_id, dayMs, workspaceId, region],
    );
    await db.query(
      `create temp table minutes on commit drop as
       select ms / 60000 as minute, kind, count(*)::int as count from draft group by 1, 2 order by 1`,
    );
    const insert = (table: string, time: string, rows: string) =>
      db.query(
        `insert into ${table} (time, spent_credits, count, workspace_id, dims, ${COLUMNS})
         select ${time}, c.count, c.count, $1, dims, ${COLUMNS} from (${rows}) c join seeded_kinds k using (kind)`,
        [workspaceId],
      );
    await insert(minute, `${from} + c.minute * interval '1 minute'`, "select * from minutes");
    await insert(
      hour,
      `${from} + c.hour * interval '1 hour'`,
      "select minute / 60 as hour, kind, sum(count) as count from minutes group by 1, 2 order by 1",
    );
    await insert(
      "verification_counts_day",
      `${from}::date`,
      "select kind, sum(count) as count from minutes group by kind",
    );
    await db.query(
      `insert into verification_totals_hour (time, spent_credits, count, workspace_id, key_space_id, outcome)
       select ${from} + (m.minute / 60) * interval '1 hour', sum(m.count), sum(m.count), $1, k.key_space_id, k.outcome
         from minutes m join seeded_kinds k using (kind)
        group by m.minute / 60, k.key_space_id, k.outcome`,
      [workspaceId],
    );
  });
}

/** $1: the workspace; $2: the first day. */
const MONTHS = `insert into verification_counts_month (time, spent_credits, count, workspace_id, dims, ${COLUMNS})
  select date_trunc('month', time)::date, sum(spent_credits), sum(count), workspace_id, dims, ${COLUMNS}
    from verification_counts_day
   where workspace_id = $1 and time >= $2 and dims in (select dims from seeded_kinds)
   group by 1, workspace_id, dims, ${COLUMNS}`;

/** The largest first, so that those who share the work end at the same time. */
async function seededPartitions(db: pg.Client, { days }: Usage): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>(
    "select name from unnest($1::text[]) as p (name) order by pg_relation_size(name::regclass) desc",
    [[...new Set(TABLES.flatMap((table) => days.map((ms) => partitionAt(table, ms).name)))]],
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
