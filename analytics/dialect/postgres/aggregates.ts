import { invalidQuery } from "../problem.ts";
import type { Aggregate, ResolvedExpression } from "../resolve/resolved.ts";
import { isConstant } from "../resolve/subexpressions.ts";
import { FLOAT64, INT64, isDate, type Type } from "../resolve/types.ts";
import { mayBeNaN } from "./nan.ts";
import { orDefault } from "./type-names.ts";
import type { Writer } from "./writer.ts";

/** Aggregate function over rows or over the frame of a window. */
export interface Aggregated extends Pick<Aggregate, "parameters" | "arguments" | "filter" | "type" | "span"> {
  readonly name: string;
  readonly distinct: boolean;
  /** SQL of the window, `over (…)`, or an empty string. */
  readonly over: string;
}

type Write = (call: Aggregated, writer: Writer) => string;

const only = ({ arguments: [operand] }: Aggregated): ResolvedExpression => operand as ResolvedExpression;

/** Emits the function with FILTER and OVER. Rows for which `unless` is true do not count. */
function applied(name: string, operand: string, call: Aggregated, writer: Writer, unless?: string): string {
  const conditions = [...(call.filter ? [writer.truth(call.filter)] : []), ...(unless ? [`not (${unless})`] : [])];
  const filter = conditions.length > 0 ? ` filter (where ${conditions.join(" and ")})` : "";
  return `${name}(${call.distinct ? "distinct " : ""}${operand})${filter}${call.over}`;
}

const canBeEmpty = (call: Aggregated, writer: Writer): boolean =>
  writer.groupsCanBeEmpty || call.filter !== undefined || call.over !== "";

/** Emits the type's default as the result for an empty group, unless groups cannot be empty. */
const filled = (sql: string, call: Aggregated, writer: Writer, type: Type = call.type): string =>
  canBeEmpty(call, writer) ? orDefault(sql, type) : sql;

/**
 * Returns the result of `min` and `max` over no rows. This is not always the type's default, because ClickHouse moves arithmetic with a
 * constant out of the aggregate: `min(x + 2)` becomes `min(x) + 2`, which is 2 for an empty group.
 */
function emptyExtreme(operand: ResolvedExpression): ResolvedExpression {
  if (operand.kind === "call" && isCalculated(operand)) {
    const [left, right] = operand.arguments as readonly [ResolvedExpression, ResolvedExpression];
    if (isConstant(right)) return { ...operand, arguments: [emptyExtreme(left), right] };
    if (isConstant(left) && operand.name !== "divide") return { ...operand, arguments: [left, emptyExtreme(right)] };
  }
  const { type, span } = operand;
  const value = isDate(type) ? "1970-01-01" : type.name === "Float64" ? 0 : type.name === "Bool" ? false : 0n;
  return { kind: "literal", value, type, span };
}

/** Returns whether the operand is a sum, difference, product or quotient, and therefore a number or a time. */
const isCalculated = (operand: ResolvedExpression): boolean => operand.kind === "call" && ARITHMETIC.has(operand.name);

const ARITHMETIC: ReadonlySet<string> = new Set(["plus", "minus", "multiply", "divide"]);

export const countSql: Write = (call, writer) => {
  const operands = call.arguments;
  if (operands.length === 0) return applied("count", "*", { ...call, distinct: false }, writer);
  if (operands.length > 1 && operands.some(({ type }) => type.nullable)) {
    throw invalidQuery("distinct counts of several values are supported when none can be null", call.span);
  }
  // Does not emit the operands, because Postgres reports an error if a parameter is declared but not used.
  if (!call.distinct && operands.every(({ type }) => !type.nullable)) return applied("count", "*", call, writer);
  const values = operands.map((operand) => writer.value(operand));
  refuseOverWindow(call, call.distinct);
  return applied("count", values.length > 1 ? `(${values.join(", ")})` : values.join(), call, writer);
};

function refuseOverWindow({ over, name, span }: Aggregated, refused = true): void {
  if (refused && over !== "") throw invalidQuery(`${name} is not supported over a window`, span);
}

/** The sum of a comparison is the number of rows for which the comparison is true. */
function isCondition({ kind, type }: ResolvedExpression): boolean {
  return kind !== "literal" && !type.nullable && type.name === "Bool";
}

export const sumSql: Write = (call, writer) => {
  const operand = only(call);
  if (operand.type.name === "Nothing") return "null::text";
  if (isCondition(operand) && !call.distinct) {
    const condition = writer.truth(operand);
    const rows = call.filter ? `${writer.truth(call.filter)} and ${condition}` : condition;
    return `count(*) filter (where ${rows})${call.over}`;
  }
  const float = call.type.name === "Float64";
  const total = applied("sum", writer.as(operand, float ? FLOAT64 : INT64), call, writer);
  return filled(float ? total : `analytics.wrapped(${total})`, call, writer);
};

export const averageSql: Write = (call, writer) => {
  const operand = only(call);
  if (operand.type.name === "Nothing") return "null::text";
  const float = operand.type.name === "Float64";
  const value = writer.as(operand, float ? FLOAT64 : INT64);
  const total = applied("sum", value, call, writer);
  const number = applied("count", value, call, writer);
  const mean = `${float ? total : `analytics.wrapped(${total})::double precision`} / nullif(${number}, 0)`;
  return call.type.nullable ? `(${mean})` : `coalesce(${mean}, 'NaN')`;
};

export const extremeSql =
  (name: "min" | "max", mayRewrite = true): Write =>
  (call, writer) => {
    const operand = only(call);
    const value = writer.value(operand);
    if (operand.type.name === "Bool")
      return filled(applied(name === "min" ? "bool_and" : "bool_or", value, call, writer), call, writer);
    // Excludes NaN, which Postgres sorts above all floats and ClickHouse ignores.
    const unless = mayBeNaN(operand) ? `${value} = 'NaN'` : undefined;
    const found = applied(name, value, call, writer);
    // ClickHouse moves arithmetic out of an aggregate only without a filter, DISTINCT or a window.
    const isRewritten =
      mayRewrite && call.filter === undefined && call.over === "" && !call.distinct && isCalculated(operand);
    if (isRewritten && canBeEmpty(call, writer) && !call.type.nullable) {
      const known = unless ? `${applied(name, value, call, writer, unless)}, ` : "";
      return `coalesce(${known}${found}, ${writer.value(emptyExtreme(operand))})`;
    }
    if (unless)
      return `coalesce(${applied(name, value, call, writer, unless)}, ${found}${call.type.nullable ? "" : ", 0"})`;
    return filled(found, call, writer);
  };

export const groupArraySql =
  (distinct: boolean): Write =>
  (call, writer) => {
    const operand = only(call);
    if (operand.type.name === "Nothing") return "null::text";
    if (operand.type.name === "Array") throw invalidQuery("arrays of arrays are not supported", call.span);
    refuseOverWindow(call, distinct || call.distinct);
    const value = writer.value(operand);
    const unless = operand.type.nullable ? `${value} is null` : undefined;
    const arrays = applied("array_agg", value, { ...call, distinct: distinct || call.distinct }, writer, unless);
    return unless ? orDefault(arrays, call.type) : filled(arrays, call, writer);
  };

export const distinctSql: Write = (call, writer) => {
  refuseOverWindow(call);
  return countSql({ ...call, distinct: true }, writer);
};

/** Array of the sorted values of a group, excluding null and NaN. */
function sortedSql(call: Aggregated, writer: Writer): string {
  refuseOverWindow(call);
  const operand = only(call);
  const value = writer.as(operand, FLOAT64);
  const unless = [
    ...(mayBeNaN(operand) ? [`${value} = 'NaN'`] : []),
    ...(operand.type.nullable ? [`${value} is null`] : []),
  ];
  return applied("array_agg", `${value} order by ${value}`, call, writer, unless.join(" or ") || undefined);
}

const levelSql = (sorted: string, level: number, { parameters }: Writer): string =>
  `analytics.quantile(${sorted}, ${parameters.float(level)})`;

/** Interpolates between two neighbors exactly as ClickHouse does; `percentile_cont` differs in the last digits. */
export const quantileSql: Write = (call, writer) => {
  const operand = only(call);
  if (operand.type.name === "Nothing") return "null::text";
  if (isDate(operand.type)) throw invalidQuery("a quantile of dates is not supported", call.span);
  const found = levelSql(sortedSql(call, writer), call.parameters[0] ?? 0.5, writer);
  return call.type.nullable ? found : `coalesce(${found}, 'NaN')`;
};

export const quantilesSql: Write = (call, writer) => {
  if (only(call).type.name === "Nothing") return "null::text";
  const sorted = sortedSql(call, writer);
  return `array[${call.parameters.map((level) => `coalesce(${levelSql(sorted, level, writer)}, 'NaN')`).join(", ")}]`;
};

/** Ignores rows in which either value is null. The result is part of the sort order, so that it is deterministic. */
export const extremeArgumentSql =
  (direction: "asc" | "desc"): Write =>
  (call, writer) => {
    const [value, by] = call.arguments as readonly [ResolvedExpression, ResolvedExpression];
    refuseOverWindow(call);
    if (value.type.name === "Array" || by.type.name === "Array" || mayBeNaN(by) || call.distinct) {
      throw invalidQuery(`${call.name} of arrays, or by values that can be NaN, is not supported`, call.span);
    }
    const known = [value, by].flatMap((one) => (one.type.nullable ? [`${writer.value(one)} is null`] : []));
    const order = `${writer.value(value)} order by ${writer.value(by)} ${direction}, ${writer.value(value)}`;
    return filled(`(${applied("array_agg", order, call, writer, known.join(" or ") || undefined)})[1]`, call, writer);
  };
