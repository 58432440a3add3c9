import type { QueryLimits, QueryScope, StoreQuery } from "../../analytics/contract.ts";
import type { CountQuery } from "../../analytics/counts.ts";
import { readQuery } from "../../analytics/dialect/check.ts";
import { emitForPostgres } from "../../analytics/dialect/postgres/emit.ts";
import { resolveQuery } from "../../analytics/dialect/resolve/resolve.ts";
import { countStatement } from "../../analytics/postgres/count-verifications.ts";
import { openPostgresReader } from "../../analytics/postgres/run.ts";
import { DAY_MS } from "../../core/utc-date.ts";
import type { Queryable } from "../../postgres/queryable.ts";
import type { Usage } from "../load/usage-formula.ts";

/* What Postgres reads to answer a question about usage: the statements and settings are those of a real answer, under EXPLAIN. */

export interface Plan {
  /** Of partitions that were read at all. */
  readonly scans: readonly Scan[];
  /** 8 KiB each, with those of indexes. */
  readonly blocks: number;
  readonly ms: number;
}

export interface Scan {
  readonly partition: string;
  /** Such as "Seq Scan", and by which index. */
  readonly how: string;
  /** What the planner expected of it. */
  readonly expectedRows: number;
  /** Those that a filter then left out, too. */
  readonly rows: number;
}

/** The last seven whole days that were seeded, Unix ms. */
export const lastWeek = ({ days }: Usage): Pick<CountQuery, "fromMs" | "toMs"> => ({
  fromMs: days.at(-7) ?? 0,
  toMs: (days.at(-1) ?? 0) + DAY_MS,
});

/** All verifications of the seeded API in that week, by the hour. */
export const weekByTheHour = (usage: Usage): CountQuery => ({
  workspaceId: usage.workspaceId,
  keySpaceIds: [`ks_${usage.apiId}`],
  keyIds: undefined,
  identityId: undefined,
  tags: [],
  ...lastWeek(usage),
  slice: "hour",
  by: [],
  order: { by: "time", descending: false },
  rowsMax: 10_000,
});

const EXPLAIN = "explain (analyze, buffers, timing off, format json)";
const LIMITS: QueryLimits = { rowsMax: 10_000, timeoutMs: 60_000, memoryBytesMax: 1e9, answerBytesMax: 10_000_000 };

/** Of a query of verifications in the served SQL. */
export async function planOfQuery(databaseUrl: string, text: string, scope: QueryScope): Promise<Plan> {
  const { nowMs, visibleFrom, workspaceId } = scope;
  const resolved = resolveQuery(readQuery(text, { of: "verifications", nowMs, visibleFrom }));
  const query = emitForPostgres(resolved, { nowMs, rowsMax: LIMITS.rowsMax, workspaceId });
  const reader = openPostgresReader({ databaseUrl, log: console });
  try {
    const explained: StoreQuery = {
      ...query,
      text: `${EXPLAIN} ${query.text}`,
      columns: [{ name: "plan", type: "String" }],
    };
    const { rowsJson } = await reader.query(explained, { scope, limits: LIMITS });
    const [row] = JSON.parse(rowsJson) as [{ plan: string }];
    return readPlan(JSON.parse(row.plan));
  } finally {
    await reader.close();
  }
}

/** Of a count for callers that write no SQL. */
export async function planOfCount(db: Queryable, question: CountQuery): Promise<Plan> {
  const { text, values } = countStatement(question);
  const { rows } = await db.query<{ "QUERY PLAN": unknown }>(`${EXPLAIN} ${text}`, [...values]);
  return readPlan(rows[0]?.["QUERY PLAN"]);
}

/** A node of EXPLAIN's JSON, as far as it is read here. */
interface Node {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Index Name"?: string;
  readonly "Plan Rows": number;
  readonly "Actual Rows": number;
  readonly "Actual Loops": number;
  readonly "Rows Removed by Filter"?: number;
  readonly "Rows Removed by Index Recheck"?: number;
  readonly "Shared Hit Blocks": number;
  readonly "Shared Read Blocks": number;
  readonly Plans?: readonly Node[];
}

function readPlan(explained: unknown): Plan {
  const [{ Plan: root, "Execution Time": ms }] = explained as [{ Plan: Node; "Execution Time": number }];
  return { scans: scansBelow(root), blocks: root["Shared Hit Blocks"] + root["Shared Read Blocks"], ms };
}

function scansBelow(node: Node): Scan[] {
  const below = (node.Plans ?? []).flatMap(scansBelow);
  const partition = node["Relation Name"];
  if (partition === undefined || node["Actual Loops"] === 0) return below;
  const index = [node, ...(node.Plans ?? [])].flatMap((each) => each["Index Name"] ?? [])[0];
  const omitted = (node["Rows Removed by Filter"] ?? 0) + (node["Rows Removed by Index Recheck"] ?? 0);
  return [
    ...below,
    {
      partition,
      how: index === undefined ? node["Node Type"] : `${node["Node Type"]} by ${index}`,
      expectedRows: node["Plan Rows"],
      rows: Math.round((node["Actual Rows"] + omitted) * node["Actual Loops"]),
    },
  ];
}
