import type { FunctionCall, FunctionName, ResolvedExpression } from "../resolve/resolved.ts";
import { INT32, INT64 } from "../resolve/types.ts";
import { aggregateSql, ofRows } from "./aggregates.ts";
import { array, arrayElement, arrayFilterSql, has, hasAll, hasAny, variableName } from "./arrays.ts";
import { comparisonSql, isComparison } from "./comparisons.ts";
import { castSql, floatSql, integerSql } from "./conversions.ts";
import * as dates from "./dates.ts";
import { formatDateTime } from "./format-date-time.ts";
import { literalSql } from "./literals.ts";
import { membershipSql } from "./membership.ts";
import { abs, arithmeticSql, divide, modulo, negate, rounding } from "./numbers.ts";
import * as text from "./text.ts";
import { unsupported } from "./unsupported.ts";
import { windowSql } from "./windows.ts";
import type { Writer } from "./writer.ts";

type Write = (call: FunctionCall, writer: Writer) => string;

const first = ({ arguments: [operand] }: FunctionCall): ResolvedExpression => operand as ResolvedExpression;

/** Functions that emit a `boolean`. */
const PREDICATES: Readonly<Partial<Record<FunctionName, Write>>> = {
  and: (call, writer) => `(${call.arguments.map((one) => writer.truth(one)).join(" and ")})`,
  or: (call, writer) => `(${call.arguments.map((one) => writer.truth(one)).join(" or ")})`,
  not: (call, writer) => `(not ${writer.truth(first(call))})`,
  isNull: (call, writer) => `(${writer.value(first(call))} is null)`,
  isNotNull: (call, writer) => `(${writer.value(first(call))} is not null)`,
  like: text.like("like"),
  notLike: text.like("not like"),
  ilike: text.like("ilike"),
  notILike: text.like("not ilike"),
  startsWith: text.startsWith,
  endsWith: text.endsWith,
  has,
  hasAny,
  hasAll,
};

const multiIf: Write = (call, writer) => {
  const branches: string[] = [];
  for (let index = 0; index + 2 < call.arguments.length; index += 2) {
    const [condition, value] = call.arguments.slice(index, index + 2) as [ResolvedExpression, ResolvedExpression];
    branches.push(`when ${writer.truth(condition)} then ${writer.as(value, call.type)}`);
  }
  return `(case ${branches.join(" ")} else ${writer.as(call.arguments.at(-1) as ResolvedExpression, call.type)} end)`;
};

const plusOrMinus =
  (name: "plus" | "minus"): Write =>
  (call, writer) => {
    if (dates.isShift(call)) return dates.shifted(name === "plus" ? "+" : "-")(call, writer);
    if (dates.isDifference(call)) return dates.difference(call, writer);
    return arithmeticSql(name)(call, writer);
  };

const VALUES: Readonly<Partial<Record<FunctionName, Write>>> = {
  plus: plusOrMinus("plus"),
  minus: plusOrMinus("minus"),
  multiply: arithmeticSql("multiply"),
  divide,
  modulo,
  negate,
  multiIf,
  coalesce: (call, writer) => `coalesce(${call.arguments.map((one) => writer.as(one, call.type)).join(", ")})`,
  now: dates.now,
  now64: dates.now64,
  today: dates.today,
  toDate: dates.toDate,
  toDateTime: dates.toDateTime,
  toDateTime64: dates.toDateTime64,
  toStartOfMinute: dates.startOf("minute"),
  toStartOfHour: dates.startOf("hour"),
  toStartOfDay: dates.startOf("day"),
  toStartOfWeek: dates.startOfWeek,
  toStartOfMonth: dates.startOfDate("month"),
  toStartOfQuarter: dates.startOfDate("quarter"),
  toStartOfYear: dates.startOfDate("year"),
  formatDateTime,
  fromUnixTimestamp64Milli: dates.fromUnixTimestamp64Milli,
  toUnixTimestamp64Milli: dates.toUnixTimestamp64Milli,
  toUnixTimestamp: dates.toUnixTimestamp,
  toInterval: dates.toInterval,
  lower: text.applied("lower"),
  upper: text.applied("upper"),
  substring: text.substring,
  concat: text.concat,
  length: text.length,
  trim: text.trim,
  JSONExtractString: text.extractString,
  round: rounding("round"),
  floor: rounding("floor"),
  ceil: rounding("ceil"),
  abs,
  toString: (call, writer) => text.textOf(first(call), writer),
  toInt32: (call, writer) => integerSql(first(call), INT32, writer),
  toInt64: (call, writer) => integerSql(first(call), INT64, writer),
  toFloat64: (call, writer) => floatSql(first(call), writer),
  array,
  arrayElement,
};

/** SQL names of the columns and array elements in the current SELECT. */
export interface Names {
  readonly column: (source: number, index: number) => string;
  readonly arrayJoin: (index: number) => string;
}

/** Emits the value of an expression. */
export function valueSql(expression: ResolvedExpression, writer: Writer, names: Names): string {
  switch (expression.kind) {
    case "literal":
      return literalSql(expression, writer.parameters);
    case "column":
      return names.column(expression.source, expression.index);
    case "arrayJoin":
      return names.arrayJoin(expression.index);
    case "variable":
      return `${variableName(expression.number)}.v`;
    case "aggregate":
      return aggregateSql(ofRows(expression), writer);
    case "window":
      return windowSql(expression, writer);
    case "cast":
      return castSql(expression.operand, expression.type, writer);
    case "arrayFilter":
      return arrayFilterSql(expression, writer);
    case "subquery":
      if (expression.exists) return asNumber(writer.truth(expression));
      return `(${writer.body(expression.body, expression.body.types)})`;
    case "in":
      return asNumber(writer.truth(expression));
    case "call":
      return callSql(expression, writer);
  }
}

const asNumber = (truth: string): string => `${truth}::int::bigint`;

function callSql(call: FunctionCall, writer: Writer): string {
  const write = VALUES[call.name];
  if (write) return write(call, writer);
  const truth = predicateSql(call, writer);
  if (truth === undefined) throw unsupported(`${call.name} is not supported`, call.span);
  return call.type.name === "Bool" ? truth : asNumber(truth);
}

function predicateSql(call: FunctionCall, writer: Writer): string | undefined {
  if (isComparison(call.name)) return comparisonSql(call.name, call, writer);
  return PREDICATES[call.name]?.(call, writer);
}

/** Emits a condition; numbers other than 0 are true. */
export function truthSql(expression: ResolvedExpression, writer: Writer): string {
  if (expression.kind === "in") return membershipSql(expression, writer);
  if (expression.kind === "subquery" && expression.exists) {
    return `exists (${writer.body(expression.body, expression.body.types)})`;
  }
  if (expression.kind === "call") {
    const truth = predicateSql(expression, writer);
    if (truth !== undefined) return truth;
  }
  const { type } = expression;
  if (type.name === "Bool") return writer.value(expression);
  if (type.name === "Nothing") return "null::boolean";
  return `(${writer.value(expression)} <> 0)`;
}
