import type { Client } from "pg";
import { verificationDims } from "../../analytics/postgres/roll-up-text.ts";
import { countsTable } from "../../analytics/postgres/tables.ts";
import { BUCKETS } from "../../analytics/tables.ts";
import { utcDate } from "../../core/utc-date.ts";
import { type Usage, usageConstants } from "./usage-formula.ts";

const DIMS = "key_space_id, key_id, identity_id, external_id, outcome, source, app_id, tags";

/**
 * Compares the rollups of an API with a plain count of its events: the sums of all days, and of one day each row of the minutes, hours and days.
 * Returns what was compared. Throws when any of it differs.
 */
export async function checkUsage(db: Client, usage: Pick<Usage, "workspaceId" | "apiId" | "days">): Promise<string> {
  const { workspaceId } = usage;
  const { key_space_id } = usageConstants(usage);
  const { rows } = await db.query<{ events: number }>(
    `select count(*)::int as events from verification_events where workspace_id = $1 and key_space_id = $2`,
    [workspaceId, key_space_id],
  );
  const events = rows[0]?.events;
  const tables = [
    ...BUCKETS.map((bucket) => countsTable("verifications", bucket)),
    "verification_totals_hour",
    "verification_key_totals_day",
  ];
  for (const table of tables) {
    const { rows } = await db.query<{ events: number }>(
      `select sum(count)::int as events from ${table} where workspace_id = $1 and key_space_id = $2`,
      [workspaceId, key_space_id],
    );
    if (rows[0]?.events !== events) throw new Error(`${table} counts ${rows[0]?.events} events, there are ${events}`);
  }
  const date = utcDate(usage.days[Math.floor(usage.days.length / 2)] ?? 0);
  const compared: string[] = [];
  for (const bucket of ["minute", "hour", "day"] as const) {
    const table = countsTable("verifications", bucket);
    const { rows } = await db.query<{ rows: number; differ: number }>(
      `with plain as (
         select date_trunc('${bucket}', to_timestamp(time / 1000.0) at time zone 'UTC') as time, ${DIMS}, ${verificationDims} as dims,
                sum(spent_credits) as spent_credits, count(*) as count
           from verification_events where day = $3::date and workspace_id = $1 and key_space_id = $2
          group by 1, ${DIMS}
       ), stored as (
         select time::timestamp as time, ${DIMS}, dims, spent_credits, count from ${table}
          where time >= $3::date and time < $3::date + 1 and workspace_id = $1 and key_space_id = $2
       )
       select count(s.dims)::int as rows,
              count(*) filter (where (p.count, p.spent_credits) is distinct from (s.count, s.spent_credits))::int as differ
         from plain p full join stored s using (time, ${DIMS}, dims)`,
      [workspaceId, key_space_id, date],
    );
    if (rows[0]?.differ !== 0) throw new Error(`${rows[0]?.differ} rows of ${table} differ from a count of ${date}`);
    compared.push(`${rows[0].rows} rows by the ${bucket}`);
  }
  return `${events} events: every rollup has their sum; of ${date}, ${compared.join(", ")} equal a plain count`;
}
