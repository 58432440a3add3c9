import { parseArgs } from "node:util";
import pg from "pg";
import { partitionAt } from "../../api-server/analytics/postgres/partition-plan.ts";
import { createPartition } from "../../api-server/analytics/postgres/partitions.ts";
import { verificationDims } from "../../api-server/analytics/postgres/roll-up-text.ts";
import { STORED_TABLES } from "../../api-server/analytics/postgres/tables.ts";
import { createPool } from "../../api-server/store/pool.ts";
import { DAY_MS, utcDate } from "../../core/utc-date.ts";
import { seedKeys } from "./seed.ts";

/*
 * `node test/load/seed-usage.ts`: fills a database with verifications of the last days, as raw events and in every rollup, in SQL. Keys
 * are used unevenly: the first ones most. A key always has the same identity and tags, so that it has a row per bucket and outcome.
 */

export interface Usage {
  readonly workspaceId: string;
  readonly events: number;
  readonly keys: number;
  readonly days: number;
  readonly progress?: (line: string) => void;
}

const DIMS = ["key_space_id", "key_id", "identity_id", "external_id", "outcome", "source", "app_id", "tags"];

/** Returns the id of the API whose keys were used. Needs a superuser. */
export async function seedUsage(databaseUrl: string, usage: Usage): Promise<string> {
  const { workspaceId, events, keys, days, progress = () => {} } = usage;
  const apiId = await seedKeys(databaseUrl, { workspaceId, count: keys });
  const pool = createPool(databaseUrl, { connectionsMax: 1, answerMsMax: 600_000 });
  const nowMs = Date.now();
  try {
    for (const table of STORED_TABLES) {
      for (let day = 0; day <= days; day++) await createPartition(pool, partitionAt(table, nowMs - day * DAY_MS));
    }
  } finally {
    await pool.end();
  }
  const db = new pg.Client({ connectionString: databaseUrl });
  await db.connect();
  try {
    await db.query("set session_replication_role = replica; set synchronous_commit = off; set work_mem = '256MB'");
    const perDay = Math.ceil(events / days);
    for (let day = days; day >= 1; day--) {
      // Full days before today, so that each of them lies in one partition.
      await seedDay(db, { workspaceId, apiId, keys, count: perDay, fromMs: Date.parse(utcDate(nowMs)) - day * DAY_MS });
      progress(`${(days - day + 1) * perDay} of ${events} events`);
    }
    await rollUpAll(db, workspaceId);
    progress("rolled up; analysing");
    for (const { name } of STORED_TABLES) await db.query(`vacuum (analyze) ${name}`);
    return apiId;
  } finally {
    await db.end();
  }
}

async function seedDay(
  db: pg.Client,
  of: { workspaceId: string; apiId: string; keys: number; count: number; fromMs: number },
): Promise<void> {
  await db.query(
    `insert into verification_events (day, id, request_id, time, workspace_id, key_space_id, api_id, key_id, identity_id,
                                      external_id, outcome, tags, source, app_id, region, spent_credits, latency_ms)
     select $6::date, 'ev_' || substr(md5($5::text || n), 1, 16), 'req_' || n, $5::bigint + (random() * 86399999)::bigint, $1,
            'ks_' || $2, $2, 'key_' || left(md5($2 || k.key), 24), 'id_' || k.key, 'user_' || k.key,
            case when n % 20 = 0 then 'RATE_LIMITED' when n % 33 = 0 then 'USAGE_EXCEEDED' else 'VALID' end,
            case when k.key % 4 = 0 then array['path=/orders'] else '{}' end, 'sidecar', 'pol_1', 'eu', 1, 0.25
       from (select n, floor($3::int * random() * random())::int as key from generate_series(1, $4::int) as n) k`,
    [of.workspaceId, of.apiId, of.keys, of.count, of.fromMs, utcDate(of.fromMs)],
  );
}

/** Each level from the one below, as a roll-up does, but without rows that are there already. */
async function rollUpAll(db: pg.Client, workspaceId: string): Promise<void> {
  const columns = ["workspace_id", "dims", ...DIMS].join(", ");
  await db.query(
    `insert into verification_counts_minute (time, spent_credits, count, workspace_id, ${DIMS.join(", ")}, dims)
     select date_trunc('minute', to_timestamp(time / 1000.0) at time zone 'UTC'), sum(spent_credits), count(*), workspace_id,
            ${DIMS.join(", ")}, ${verificationDims}
       from verification_events
      where workspace_id = $1
      group by 1, workspace_id, ${DIMS.join(", ")}`,
    [workspaceId],
  );
  for (const [bucket, below] of [
    ["hour", "minute"],
    ["day", "hour"],
    ["month", "day"],
  ]) {
    await db.query(
      `insert into verification_counts_${bucket} (time, spent_credits, count, ${columns})
       select date_trunc('${bucket}', time::timestamp), sum(spent_credits), sum(count), ${columns}
         from verification_counts_${below}
        where workspace_id = $1
        group by 1, ${columns}`,
      [workspaceId],
    );
  }
  await db.query(
    `insert into verification_totals_hour (time, spent_credits, count, workspace_id, key_space_id, outcome)
     select time, sum(spent_credits), sum(count), workspace_id, key_space_id, outcome
       from verification_counts_hour
      where workspace_id = $1
      group by time, workspace_id, key_space_id, outcome`,
    [workspaceId],
  );
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
  const progress = (line: string) => console.error(`  ${line}`);
  const usage = { workspaceId: values.workspace, events, keys, days, progress };
  const apiId = await seedUsage(values["database-url"], usage);
  console.log(`${events} verifications in ${((performance.now() - startedAt) / 1000).toFixed(1)} s: API ${apiId}`);
}
