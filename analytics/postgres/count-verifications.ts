import type { Pool } from "pg";
import { Code } from "../../core/verification/codes.ts";
import { inBoundedRead } from "../../postgres/bounded-read.ts";
import { isDatabaseUnavailable } from "../../postgres/failures.ts";
import { QueryRejected } from "../contract.ts";
import type { CountOrder, CountQuery, Target, UsageCount } from "../counts.ts";
import { dayParts } from "../day-parts.ts";

const TIMEOUT_MS = 10_000;

/** Result row with one column per code. */
type CountRow = {
  readonly slice: number | null;
  readonly key_id: string | null;
  readonly identity_id: string | null;
  readonly external_id: string | null;
  readonly tags: string[] | null;
  readonly tag: string | null;
  readonly total: number;
} & Readonly<Record<Code, number>>;

/**
 * Counts verifications. Without keys, identities and tags, the query reads only hourly totals, so its cost is independent of the number of
 * keys. @throws QueryRejected.
 */
export async function countVerifications(db: Pool, question: CountQuery): Promise<readonly UsageCount[]> {
  const statement = countStatement(question);
  try {
    const rows = await inBoundedRead(db, TIMEOUT_MS, (tx) => tx.query<CountRow>(statement));
    if (rows === "TOO_SLOW") throw new QueryRejected("timeout", "Counting took longer than its time limit.");
    return rows.rows.map(toCount);
  } catch (error) {
    if (!isDatabaseUnavailable(error)) throw error;
    throw new QueryRejected("unavailable", "The analytics store does not respond; try again later.", { cause: error });
  }
}

const toCount = ({ slice, key_id, identity_id, external_id, tags, tag, total, ...byCode }: CountRow): UsageCount => ({
  timeMs: slice ?? undefined,
  keyId: key_id ?? undefined,
  identity: identity_id === null ? undefined : { id: identity_id, externalId: external_id ?? "" },
  tags: tags ?? undefined,
  tag: tag ?? undefined,
  byCode,
  total,
});

/** Columns of `c` that each target adds to the result rows. */
const TARGETS: Readonly<Record<Target, readonly string[]>> = {
  key: ["key_id"],
  identity: ["identity_id"],
  tags: ["tags"],
  tag: ["tag"],
};

const NONE: Readonly<Record<string, string>> = {
  key_id: "null::text",
  identity_id: "null::text",
  tags: "null::text[]",
  tag: "null::text",
};

/** Exported so that tests can check the query plan. */
export function countStatement(question: CountQuery): {
  readonly text: string;
  readonly values: readonly unknown[];
} {
  const { slice, by, order, rowsMax } = question;
  const values = new Values();
  const grouped = by.flatMap((target) => TARGETS[target]);
  const sliceSql =
    slice === undefined ? "null::bigint" : `(extract(epoch from date_trunc('${slice}', c.time)) * 1000)::bigint`;
  const groupBy = [...(slice === undefined ? [] : [`date_trunc('${slice}', c.time)`]), ...grouped.map(columnSql)];
  const text = `select ${sliceSql} as slice,
       ${Object.entries(NONE)
         .map(([name, none]) => `${grouped.includes(name) ? columnSql(name) : none} as ${name}`)
         .join(", ")},
       ${by.includes("identity") ? "max(c.external_id)" : "null::text"} as external_id,
       ${Code.options.map((code) => `${countOf(code)} as "${code}"`).join(", ")},
       ${TOTAL} as total
  from (${sourceSql(question, values)}) c
  ${by.includes("tag") ? "cross join lateral (select distinct u.tag from unnest(c.tags) as u(tag)) t" : ""}
 ${by.includes("identity") ? "where c.identity_id <> ''" : ""}
 ${groupBy.length === 0 ? "having count(*) > 0" : `group by ${groupBy.join(", ")}`}
 order by ${[orderSql(order, slice !== undefined), ...groupBy].join(", ")}
 limit ${values.add(rowsMax)}`;
  return { text, values: values.all };
}

const columnSql = (name: string): string => (name === "tag" ? `t.tag collate "C"` : `c.${name} collate "C"`);

const TOTAL = "sum(c.count)::bigint";
const countOf = (code: Code): string => `coalesce(sum(c.count) filter (where c.outcome = '${code}'), 0)::bigint`;

function orderSql({ by, descending }: CountOrder, hasSlice: boolean): string {
  const direction = descending ? "desc" : "asc";
  if (by === "time") return hasSlice ? `1 ${direction}` : "1";
  return `${by === "total" ? TOTAL : countOf(by)} ${direction}`;
}

/**
 * Returns the source rows: complete days from the daily table, and the remaining hours at the start and the end of the range from the
 * hourly table.
 */
function sourceSql(question: CountQuery, values: Values): string {
  const { by, keyIds, identityId, tags } = question;
  const isTotal = by.length === 0 && keyIds === undefined && identityId === undefined && tags.length === 0;
  if (isTotal) {
    return `select v.time, v.outcome, v.count
              from verification_totals_hour v
             where ${whereSql(question, values)} and ${betweenSql(question, values, "timestamp")}`;
  }
  const columns = "v.outcome, v.count, v.key_id, v.identity_id, v.external_id, v.tags";
  const { days, rest } = question.slice === "hour" ? { days: undefined, rest: [question] } : dayParts(question);
  const where = `${whereSql(question, values)}${filterSql(question, values)}`;
  const parts = rest.map(
    (range) => `select v.time, ${columns} from verification_counts_hour v
                 where ${where} and ${betweenSql(range, values, "timestamp")}`,
  );
  if (days !== undefined) {
    parts.push(
      `select v.time::timestamp, ${columns} from verification_counts_day v
        where ${where} and ${betweenSql(days, values, "date")}`,
    );
  }
  return parts.join(" union all ");
}

const whereSql = ({ workspaceId, keySpaceIds }: CountQuery, values: Values): string =>
  `v.workspace_id = ${values.add(workspaceId)}${keySpaceIds === undefined ? "" : ` and v.key_space_id = any(${values.add(keySpaceIds)}::text[])`}`;

function filterSql({ keyIds, identityId, tags }: CountQuery, values: Values): string {
  return [
    ...(keyIds === undefined ? [] : [` and v.key_id = any(${values.add(keyIds)}::text[])`]),
    ...(identityId === undefined ? [] : [` and v.identity_id = ${values.add(identityId)}`]),
    ...(tags.length === 0 ? [] : [` and v.tags @> ${values.add(tags)}::text[]`]),
  ].join("");
}

function betweenSql(
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
  values: Values,
  type: "timestamp" | "date",
): string {
  const at = (ms: number): string => `(to_timestamp(${values.add(ms / 1000)}) at time zone 'UTC')::${type}`;
  return `v.time >= ${at(fromMs)} and v.time < ${at(toMs)}`;
}

/** Collects parameter values and returns their placeholders. */
class Values {
  readonly all: unknown[] = [];

  add(value: unknown): string {
    this.all.push(value);
    return `$${this.all.length}`;
  }
}
