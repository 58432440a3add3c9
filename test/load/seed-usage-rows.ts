import type pg from "pg";
import { partitionAt } from "../../analytics/postgres/partition-plan.ts";
import { verificationDims } from "../../analytics/postgres/roll-up-text.ts";
import { STORED_TABLES } from "../../analytics/postgres/tables.ts";
import { DAY_MS, utcDate } from "../../core/utc-date.ts";
import { withoutIndexes } from "./unindexed.ts";
import { kindSql, type Usage, usageConstants, usageKinds } from "./usage-formula.ts";

/* The rows of seeded verifications: the kinds that there are, then each day, then the months. */

export const SEEDED_TABLES = STORED_TABLES.filter(({ of }) => of === "verifications");
const COLUMNS = ["key_space_id", "key_id", "identity_id", "external_id", "outcome", "source", "app_id", "tags"].join(
  ", ",
);

/** The hash over all dimensions is computed once for each kind, not for each row. */
export async function makeKinds(db: pg.Client, usage: Usage): Promise<void> {
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

export async function seedDay(db: pg.Client, usage: Usage, day: number): Promise<void> {
  const { workspaceId, keys, eventsPerDay } = usage;
  const dayMs = usage.days[day] ?? 0;
  const { api_id, region } = usageConstants(usage);
  const partition = (name: string) => {
    const table = SEEDED_TABLES.find((each) => each.name === name);
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
       select g, ((g - $1::bigint) * ${DAY_MS} / $2::bigint)::int as ms, ${kind}::int as kind
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
    await db.query(
      `insert into verification_key_totals_day (time, spent_credits, count, workspace_id, key_space_id, key_id)
       select ${from}::date, sum(m.count), sum(m.count), $1, k.key_space_id, k.key_id
         from minutes m join seeded_kinds k using (kind)
        group by k.key_space_id, k.key_id`,
      [workspaceId],
    );
  });
}

/** The months, from all days. */
export async function seedMonths(db: pg.Client, { workspaceId, days }: Usage): Promise<void> {
  await db.query(MONTHS, [workspaceId, utcDate(days[0] ?? 0)]);
  await db.query("drop table seeded_kinds");
}

const MONTHS = `insert into verification_counts_month (time, spent_credits, count, workspace_id, dims, ${COLUMNS})
  select date_trunc('month', time)::date, sum(spent_credits), sum(count), workspace_id, dims, ${COLUMNS}
    from verification_counts_day
   where workspace_id = $1 and time >= $2 and dims in (select dims from seeded_kinds)
   group by 1, workspace_id, dims, ${COLUMNS}`;
