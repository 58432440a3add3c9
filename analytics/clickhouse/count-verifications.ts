import { Code } from "../../core/verification/codes.ts";
import type { CountOrder, CountQuery, Slice, Target, UsageCount } from "../counts.ts";
import { dayParts } from "../day-parts.ts";
import type { ClickHouseClient } from "./client.ts";
import { toRejection } from "./refusals.ts";

const TIMEOUT_SECONDS = 10;

const START_OF: Readonly<Record<Slice, string>> = {
  hour: "toStartOfHour(c.at)",
  day: "toStartOfDay(c.at)",
  month: "toDateTime(toStartOfMonth(c.at), 'UTC')",
};

/** Columns that each grouping target adds to the result rows. */
const COLUMN_OF: Readonly<Record<Target, string>> = {
  key: "c.key_id",
  identity: "c.identity_id",
  tags: "c.tags",
  tag: "arrayJoin(arrayDistinct(c.tags))",
};

const COUNTED =
  "e.time as at, e.outcome as outcome, e.count as count, e.key_id as key_id, e.identity_id as identity_id, e.external_id as external_id, e.tags as tags";

/**
 * Counts verifications. Without keys, identities and tags, the query reads only hourly totals, so its cost is independent of the number of
 * keys. @throws QueryRejected.
 */
export async function countVerifications(
  client: ClickHouseClient,
  question: CountQuery,
): Promise<readonly UsageCount[]> {
  try {
    const response = await client.query({
      query: countText(question),
      query_params: parametersOf(question),
      format: "JSONEachRow",
      clickhouse_settings: {
        max_execution_time: TIMEOUT_SECONDS,
        wait_end_of_query: 1,
        do_not_merge_across_partitions_select_final: 1,
        output_format_json_quote_64bit_integers: 0,
      },
      use_multipart_params: true,
    });
    const { by, slice } = question;
    return (await response.json<CountRow>()).map((row) => toCount(row, by, slice));
  } catch (error) {
    const { refused } = toRejection(error);
    if (refused.reason === "timeout" || refused.reason === "unavailable") throw refused;
    throw error;
  }
}

/** Result row with one column per code: `code0`, `code1` and so on. */
type CountRow = {
  readonly slice: number;
  readonly key?: string;
  readonly identity?: string;
  readonly tags?: string[];
  readonly tag?: string;
  readonly external_id: string;
  readonly total: number;
} & Readonly<Record<`code${number}`, number>>;

function toCount(row: CountRow, by: readonly Target[], slice: Slice | undefined): UsageCount {
  return {
    timeMs: slice === undefined ? undefined : row.slice * 1000,
    keyId: row.key,
    identity: by.includes("identity") ? { id: row.identity ?? "", externalId: row.external_id } : undefined,
    tags: row.tags,
    tag: row.tag,
    byCode: Object.fromEntries(Code.options.map((code, i) => [code, row[`code${i}`] ?? 0])) as Record<Code, number>,
    total: row.total,
  };
}

function countText(question: CountQuery): string {
  const { slice, by, order } = question;
  const sliceOf = slice === undefined ? "0" : `toUnixTimestamp(${START_OF[slice]})`;
  const groups = [...(slice === undefined ? [] : ["slice"]), ...by.map((target) => `\`${target}\``)];
  const selected = [
    `${sliceOf} as slice`,
    ...by.map((target) => `${COLUMN_OF[target]} as \`${target}\``),
    `${by.includes("identity") ? "max(c.external_id)" : "''"} as external_id`,
    ...Code.options.map((code, i) => `sumIf(c.count, c.outcome = '${code}') as code${i}`),
    "sum(c.count) as total",
  ];
  return `select ${selected.join(", ")}
    from (${sourceSql(question)}) as c
    ${by.includes("identity") ? "where c.identity_id != ''" : ""}
    ${groups.length === 0 ? "having count() > 0" : `group by ${groups.join(", ")}`}
    order by ${[orderSql(order, slice), ...groups].join(", ")}
    limit {rowsMax:UInt64}`;
}

function orderSql({ by, descending }: CountOrder, slice: Slice | undefined): string {
  const direction = descending ? "desc" : "asc";
  if (by === "time") return `${slice === undefined ? "total" : "slice"} ${direction}`;
  return `${by === "total" ? "total" : `code${Code.options.indexOf(by)}`} ${direction}`;
}

/**
 * Returns the source rows: complete days from the daily table, and the remaining hours at the start and the end of the range from the
 * hourly table.
 */
function sourceSql(question: CountQuery): string {
  const { by, keyIds, identityId, tags, slice } = question;
  const where = whereSql(question);
  if (by.length === 0 && keyIds === undefined && identityId === undefined && tags.length === 0) {
    return `select e.time as at, e.outcome as outcome, e.count as count
              from verification_totals_hour as e
             where e.workspace_id = {workspaceId:String} ${where} and ${betweenSql(question, "toDateTime")}`;
  }
  const { days, rest } = slice === "hour" ? { days: undefined, rest: [question] } : dayParts(question);
  const parts = rest.map(
    (range) => `select ${COUNTED} from verification_counts_hour as e
                 where e.workspace_id = {workspaceId:String} ${where} and ${betweenSql(range, "toDateTime")}`,
  );
  if (days !== undefined) {
    const ofDays = COUNTED.replace("e.time", "toDateTime(e.time, 'UTC')");
    parts.push(
      `select ${ofDays} from verification_counts_day as e
        where e.workspace_id = {workspaceId:String} ${where} and ${betweenSql(days, "toDate")}`,
    );
  }
  return parts.join(" union all ");
}

const whereSql = ({ keySpaceIds, keyIds, identityId, tags }: CountQuery): string =>
  [
    ...(keySpaceIds === undefined ? [] : ["and e.key_space_id in {keySpaceIds:Array(String)}"]),
    ...(keyIds === undefined ? [] : ["and e.key_id in {keyIds:Array(String)}"]),
    ...(identityId === undefined ? [] : ["and e.identity_id = {identityId:String}"]),
    ...(tags.length === 0 ? [] : ["and hasAll(e.tags, {tags:Array(String)})"]),
  ].join(" ");

/** Writes the bounds into the SQL directly, because they are computed integers and contain no caller input. */
const betweenSql = ({ fromMs, toMs }: { fromMs: number; toMs: number }, type: "toDateTime" | "toDate"): string =>
  `e.time >= ${type}(${fromMs / 1000}, 'UTC') and e.time < ${type}(${toMs / 1000}, 'UTC')`;

const parametersOf = ({ workspaceId, keySpaceIds, keyIds, identityId, tags, rowsMax }: CountQuery) => ({
  workspaceId,
  rowsMax,
  tags,
  ...(keySpaceIds === undefined ? {} : { keySpaceIds }),
  ...(keyIds === undefined ? {} : { keyIds }),
  ...(identityId === undefined ? {} : { identityId }),
});
