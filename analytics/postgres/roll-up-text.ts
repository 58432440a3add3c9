import type { AnalyticsOf, Bucket } from "../tables.ts";
import { COUNT_MAX } from "./event-lines.ts";
import { countsTable } from "./tables.ts";

/*
 * Statement that adds queued counts to all roll-ups. Each level is computed from the next finer one, so queued counts are read and grouped
 * only once. Rows are written in key order.
 */

interface Counted {
  readonly of: AnalyticsOf;
  /** Columns of the queued groups in the order of their type, without `time`. */
  readonly sums: readonly string[];
  readonly dims: readonly string[];
}

const VERIFICATIONS: Counted = {
  of: "verifications",
  sums: ["spent_credits", "count"],
  dims: ["key_space_id", "key_id", "identity_id", "external_id", "outcome", "source", "app_id", "tags"],
};
const RATELIMITS: Counted = {
  of: "ratelimits",
  sums: ["passed", "total", "passed_tokens", "total_tokens"],
  dims: ["namespace_id", "identifier"],
};
const COUNTED: readonly Counted[] = [VERIFICATIONS, RATELIMITS];

const dimsSql = (dims: readonly string[]): string => `substring(sha256(record_send(row(${dims.join(", ")}))) for 16)`;

/** Primary key columns of verification counts besides workspace and time. */
export const verificationDims: string = dimsSql(VERIFICATIONS.dims);

/** Levels from the finest to the coarsest; each is grouped from the previous one. */
const LEVELS: readonly { bucket: Bucket; type: "timestamp" | "date" }[] = [
  { bucket: "minute", type: "timestamp" },
  { bucket: "hour", type: "timestamp" },
  { bucket: "day", type: "date" },
  { bucket: "month", type: "date" },
];

const summed = (columns: readonly string[]): string =>
  columns.map((column) => `least(sum(${column}), ${COUNT_MAX})::bigint as ${column}`).join(", ");

/** Returns assignments that add counts to an existing row. Sums stop at COUNT_MAX, so the sum of two of them cannot overflow. */
const added = (table: string, columns: readonly string[]): string =>
  columns.map((column) => `${column} = least(${table}.${column} + excluded.${column}, ${COUNT_MAX})`).join(", ");

/** Returns the levels of one kind as CTEs. */
function levelsOf({ of, sums, dims }: Counted, firstParameter: number): string[] {
  const columns = ["dims", ...dims].join(", ");
  return LEVELS.flatMap(({ bucket, type }, at) => {
    const table = countsTable(of, bucket);
    const name = `${of}_${bucket}`;
    const below = LEVELS[at - 1];
    const source =
      below === undefined
        ? `select time, ${summed(sums)}, workspace_id, ${dims.join(", ")},
                  ${dimsSql(dims)} as dims
             from (select taken.workspace_id, g.* from taken, unnest(taken.${of}) g) queued
            group by time, workspace_id, ${dims.join(", ")}`
        : `select date_trunc('${bucket}', time::timestamp)::${type} as time, ${summed(sums)}, workspace_id, ${columns}
             from ${of}_${below.bucket}
            group by 1, workspace_id, ${columns}`;
    return [
      `${name} as materialized (${source})`,
      `add_${name} as (
         insert into ${table} (time, ${sums.join(", ")}, workspace_id, ${columns})
         select time, ${sums.join(", ")}, workspace_id, ${columns}
           from ${name}
          where time >= $${firstParameter + at}
          order by workspace_id, time, dims
             on conflict (workspace_id, time, dims) do update set ${added(table, sums)})`,
    ];
  });
}

/** Verification counts by a subset of the columns, derived from a level. */
interface Totals {
  readonly table: string;
  readonly bucket: Bucket;
  /** `dims`: primary key columns besides workspace and time. `order`: columns by which rows are sorted before they are written. */
  readonly dims: readonly string[];
  readonly order: readonly string[];
}

const TOTALS: readonly Totals[] = [
  {
    table: "verification_totals_hour",
    bucket: "hour",
    dims: ["key_space_id", "outcome"],
    order: ["workspace_id", "key_space_id", "time", "outcome"],
  },
  {
    table: "verification_key_totals_day",
    bucket: "day",
    dims: ["key_space_id", "key_id"],
    order: ["workspace_id", "time", "key_id", "key_space_id"],
  },
];

/** Returns a CTE that follows the verification levels. */
function totalsOf({ table, bucket, dims, order }: Totals, firstParameter: number): string {
  const { sums } = VERIFICATIONS;
  const columns = ["workspace_id", ...dims].join(", ");
  const from = firstParameter + LEVELS.findIndex((level) => level.bucket === bucket);
  return `add_${table} as (
    insert into ${table} (time, ${sums.join(", ")}, ${columns})
    select time, ${summed(sums)}, ${columns}
      from verifications_${bucket}
     where time >= $${from}
     group by time, ${columns}
     order by ${order.join(", ")}
        on conflict (${order.join(", ")}) do update set ${added(table, sums)})`;
}

/**
 * Statement of a roll-up. $1: ids of the queue's rows. Further parameters: start of the first partition per kind and level. Returns the
 * number of added events and groups.
 */
export const ROLL_UP = `
  with taken as materialized (
    delete from rollup_queue where id = any($1)
    returning workspace_id, events, groups, verifications, ratelimits
  ), ${[
    ...COUNTED.flatMap((counted, at) => levelsOf(counted, 2 + at * LEVELS.length)),
    ...TOTALS.map((totals) => totalsOf(totals, 2)),
  ].join(", ")}
  select coalesce(sum(events), 0)::integer as events from taken`;
