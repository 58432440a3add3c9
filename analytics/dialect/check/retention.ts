import type { VisibleFrom } from "../../contract.ts";
import { PUBLIC_TABLES, type PublicTable } from "../../tables.ts";
import { publishedFunction } from "../functions/registry.ts";
import { QueryProblem } from "../problem.ts";
import type { Expression, From, Query, Select } from "../tree.ts";
import { walk } from "../walk.ts";
import { type BucketUnit, startOf } from "./calendar.ts";
import { bucketOfCall, constantOf, isForeignZone } from "./moments.ts";

/*
 * Rule 12: rejects a query that asks for data past its retention, so that the caller does not mistake missing rows for zero usage. The rule
 * examines only the operands of the top-level AND of a WHERE that compare a constant with `time` or with the start of its bucket. With all
 * other conditions, the query reads the retained rows without an error.
 */

export interface Clock {
  readonly nowMs: number;
  readonly visibleFrom: VisibleFrom;
}

export function retentionProblems(query: Query, clock: Clock): readonly QueryProblem[] {
  const problems: QueryProblem[] = [];
  walk(query, (part) => {
    if (part.kind !== "select" || part.where === undefined) return true;
    for (const bound of lowerBounds(part.where)) {
      const compared = timeOf(bound.compared, part);
      if (compared !== undefined && isBeyond(bound.with, compared, clock))
        problems.push(problemAt(bound.with, compared, clock));
    }
    return true;
  });
  return problems;
}

function problemAt({ span }: Expression, { table }: ComparedTime, { visibleFrom }: Clock): QueryProblem {
  const from = new Date(visibleFrom[table.bucket ?? "raw"]).toISOString();
  const detail = `the rows of ${table.name} are kept from ${from} on, and this asks for older ones`;
  return new QueryProblem("query_range_exceeds_retention", detail, span);
}

interface Bound {
  readonly compared: Expression;
  readonly with: Expression;
}

/** Returns the lower bounds that the operands of the top-level AND set. */
function lowerBounds(where: Expression): readonly Bound[] {
  const bounds: Bound[] = [];
  const waiting = [where];
  for (let term = waiting.pop(); term !== undefined; term = waiting.pop()) {
    if (term.kind === "aliased") waiting.push(term.expression);
    if (term.kind === "between" && !term.negated) bounds.push({ compared: term.operand, with: term.low });
    if (term.kind !== "binary") continue;
    const { operator, left, right } = term;
    if (operator === "and") waiting.push(right, left);
    if (operator === ">" || operator === ">=" || operator === "=") bounds.push({ compared: left, with: right });
    if (operator === "<" || operator === "<=" || operator === "=") bounds.push({ compared: right, with: left });
  }
  return bounds;
}

/** Column `time` of a table, or the start of the bucket that contains this time, as an operand of a comparison. */
interface ComparedTime {
  readonly table: PublicTable;
  /** Unit, in ms, of a plain number to which this operand is compared; `undefined` if it cannot be compared to one. */
  readonly unitMs: number | undefined;
  /** Bucket functions applied to the time, first to last. */
  readonly buckets: readonly BucketUnit[];
}

function timeOf(expression: Expression, select: Select): ComparedTime | undefined {
  if (expression.kind === "aliased") return timeOf(expression.expression, select);
  if (expression.kind === "name") return timeOfName(expression, select);
  if (expression.kind !== "call") return undefined;
  const published = publishedFunction(expression.name.text);
  const bucket = bucketOfCall(expression);
  if (bucket !== undefined) {
    const inside = timeOf(bucket.of, select);
    const unitMs = bucket.isDate ? undefined : 1000;
    return inside && { ...inside, unitMs, buckets: [...inside.buckets, bucket.unit] };
  }
  const [first] = expression.arguments;
  if (first === undefined) return undefined;
  // The text is compared as a local time, for which the rule computes no timestamp.
  if (expression.arguments.slice(1).some(isForeignZone)) return undefined;
  if (published === "fromUnixTimestamp64Milli") return conversionOf(first, select);
  if (published !== "toDateTime" && published !== "toDateTime64") return undefined;
  // Matches `toDateTime(time / 1000)` of a raw table.
  if (
    first.kind === "binary" &&
    first.operator === "/" &&
    first.right.kind === "number" &&
    first.right.text === "1000"
  ) {
    const inside = conversionOf(first.left, select);
    return inside && { ...inside, buckets: published === "toDateTime" ? ["second"] : [] };
  }
  const inside = timeOf(first, select);
  return inside?.unitMs === 1 ? undefined : inside && { ...inside, unitMs: 1000 };
}

/** Recognizes the conversion of a raw table's milliseconds to a DateTime. */
function conversionOf(expression: Expression, select: Select): ComparedTime | undefined {
  const inside = timeOf(expression, select);
  return inside?.unitMs === 1 ? { ...inside, unitMs: 1000 } : undefined;
}

function timeOfName({ parts }: Extract<Expression, { kind: "name" }>, select: Select): ComparedTime | undefined {
  const [first, last] = [parts[0], parts.at(-1)];
  if (last?.text !== "time") return undefined;
  const table = tableOf(select.from, parts.length === 2 ? first?.text : undefined);
  if (table === undefined) return undefined;
  const alias = parts.length === 1 ? aliasedAs(select, "time") : undefined;
  // An alias `time` hides the column of this name, even in WHERE. Only in the alias's own definition does `time` mean the column.
  if (alias !== undefined) {
    return timeOf(alias, { ...select, columns: [], with: [], where: undefined });
  }
  const unitMs = table.bucket === undefined ? 1 : table.columns.time === "DateTime" ? 1000 : undefined;
  return { table, unitMs, buckets: table.bucket === undefined ? [] : [table.bucket] };
}

/** Returns the public table that `name` refers to, or the first table if `name` is omitted; `undefined` for a subquery or a CTE. */
function tableOf(from: From, name: string | undefined): PublicTable | undefined {
  if (from.kind === "join")
    return tableOf(from.left, name) ?? (name === undefined ? undefined : tableOf(from.right, name));
  if (from.kind === "derived") return undefined;
  if (name !== undefined && name !== (from.alias ?? from.name).text) return undefined;
  return PUBLIC_TABLES.find((table) => table.name === from.name.text);
}

function aliasedAs({ columns, with: common, where }: Select, name: string): Expression | undefined {
  let found = common.find((item) => item.name.text === name && item.is.kind === "expression")?.is as
    | { readonly expression: Expression }
    | undefined;
  walk([columns, where], (part) => {
    if (part.kind === "aliased" && part.alias.text === name) found = part;
    return part.kind !== "select" && part.kind !== "set";
  });
  return found?.expression;
}

function isBeyond(
  expression: Expression,
  { table, unitMs, buckets }: ComparedTime,
  { nowMs, visibleFrom }: Clock,
): boolean {
  const constant = constantOf(expression, nowMs);
  if (constant === undefined) return false;
  const latest = constant.kind === "count" ? constant.latest * (unitMs ?? Number.NaN) : constant.latest;
  // A bucket is visible if a part of it is retained, so a query may start with the first bucket that is partly retained.
  const allowedFrom = buckets.reduce((ms, unit) => startOf(unit, ms), visibleFrom[table.bucket ?? "raw"]);
  return latest < allowedFrom;
}
