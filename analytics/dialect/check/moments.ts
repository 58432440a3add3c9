import { publishedFunction } from "../functions/registry.ts";
import type { Call, Expression, IntervalUnit } from "../tree.ts";
import { type BucketUnit, plusUnits, startOf } from "./calendar.ts";

/*
 * Evaluates the values that a query compares with `time`: literals, the clock, and expressions of these. Returns `undefined` for
 * expressions that it cannot evaluate; rule 12 ignores those.
 */

/**
 * Timestamp in Unix ms. If `ms` is the start of a bucket, `latest` is the time from which it was computed, such as now for
 * `toStartOfHour(now())`. Rule 12 checks `latest`, because the start of a bucket may be past retention even if `latest` is not.
 */
export interface Timestamp {
  readonly kind: "date" | "dateTime";
  readonly ms: number;
  readonly latest: number;
}

/**
 * Plain number. Its unit depends on the other operand of the comparison. `latest` has the same meaning as in `Timestamp`, but in the unit
 * of the number.
 */
export interface Count {
  readonly kind: "count";
  readonly value: number;
  readonly latest: number;
}

const DAY_MS = 86_400_000;

export function constantOf(expression: Expression, nowMs: number): Timestamp | Count | undefined {
  switch (expression.kind) {
    case "aliased":
      return constantOf(expression.expression, nowMs);
    case "number":
      return count(Number(expression.text));
    case "string":
      return /^-?\d+$/.test(expression.value) ? count(Number(expression.value)) : timestampOfText(expression.value);
    case "unary": {
      const operand = expression.operator === "-" ? constantOf(expression.operand, nowMs) : undefined;
      return operand?.kind === "count" ? count(-operand.value) : undefined;
    }
    case "cast":
      return converted(expression.type.replace(/\(.*/, ""), constantOf(expression.operand, nowMs));
    case "call":
      return constantOfCall(expression, nowMs);
    case "binary":
      return constantOfSum(expression, nowMs);
    default:
      return undefined;
  }
}

const count = (value: number, latest = value): Count => ({ kind: "count", value, latest });
const timestamp = (kind: Timestamp["kind"], ms: number, latest = ms): Timestamp => ({ kind, ms, latest });

interface Bucket {
  readonly unit: BucketUnit;
  readonly of: Expression;
  /**
   * Whether ClickHouse returns the start of the bucket as a Date. A plain number that is added to a Date counts days; added to any other
   * type, it counts seconds.
   */
  readonly isDate: boolean;
}

/**
 * Returns the bucket for a function that computes the start of a bucket, otherwise `undefined`. The timestamp is the first argument, but
 * the second one of `date_trunc`.
 */
export function bucketOfCall({ name, arguments: values }: Call): Bucket | undefined {
  const [first, second] = values;
  const published = publishedFunction(name.text) ?? "";
  if (published === "date_trunc" && first?.kind === "string" && second !== undefined) {
    if (values.slice(2).some(isForeignZone)) return undefined;
    const unit = first.value.toLowerCase();
    if (unit === "week") return { unit: "mondayWeek", of: second, isDate: true };
    return isUnit(unit) ? { unit, of: second, isDate: isDated(unit) } : undefined;
  }
  // Ignores local times, because the rule does not compute the start of their buckets.
  if (first === undefined || values.slice(1).some(isForeignZone)) return undefined;
  if (published === "toDate") return { unit: "day", of: first, isDate: true };
  if (published === "toStartOfWeek" && second !== undefined) {
    const mode = second.kind === "number" ? Number(second.text) : 0;
    return { unit: mode % 2 === 1 ? "mondayWeek" : "week", of: first, isDate: true };
  }
  const unit = /^toStartOf(\w+)$/.exec(published)?.[1]?.toLowerCase();
  return unit !== undefined && isUnit(unit) ? { unit, of: first, isDate: isDated(unit) } : undefined;
}

export const isForeignZone = (argument: Expression): boolean =>
  argument.kind === "string" && !/^(utc|etc\/utc)$/i.test(argument.value);

const isDated = (unit: BucketUnit): boolean => ["week", "month", "quarter", "year"].includes(unit);

const isUnit = (text: string): text is BucketUnit =>
  ["second", "minute", "hour", "day", "week", "month", "quarter", "year"].includes(text);

function constantOfCall(call: Call, nowMs: number): Timestamp | Count | undefined {
  const [first] = call.arguments;
  const published = publishedFunction(call.name.text);
  switch (published) {
    case "now":
      return timestamp("dateTime", startOf("second", nowMs), nowMs);
    case "now64":
      return timestamp("dateTime", nowMs);
    case "today":
      return timestamp("date", startOf("day", nowMs), nowMs);
  }
  const bucket = bucketOfCall(call);
  if (bucket !== undefined) return startOfConstant(bucket, constantOf(bucket.of, nowMs));
  // Ignores local times, which the rule does not compute.
  if (call.arguments.slice(1).some(isForeignZone)) return undefined;
  const operand = first === undefined ? undefined : constantOf(first, nowMs);
  switch (published) {
    case "toDateTime":
      return converted("DateTime", operand);
    case "toDateTime64":
      return converted("DateTime64", operand);
    case "toInt64":
      return operand?.kind === "count" ? operand : undefined;
    case "fromUnixTimestamp64Milli":
      return operand?.kind === "count" ? timestamp("dateTime", operand.value, operand.latest) : undefined;
    case "toUnixTimestamp64Milli":
      return operand?.kind === "dateTime" ? count(operand.ms, operand.latest) : undefined;
    case "toUnixTimestamp":
      if (operand === undefined || operand.kind === "count") return undefined;
      return count(Math.floor(operand.ms / 1000), operand.latest / 1000);
    default:
      return undefined;
  }
}

/** Evaluates a bucket function. The timestamp in its argument becomes `latest`. A literal date means the complete day. */
function startOfConstant(
  { unit, isDate }: Pick<Bucket, "unit" | "isDate">,
  operand: Timestamp | Count | undefined,
): Timestamp | undefined {
  const inside = operand?.kind === "count" ? converted("DateTime", operand) : operand;
  if (inside === undefined || inside.kind === "count") return undefined;
  return timestamp(isDate ? "date" : "dateTime", startOf(unit, inside.ms), inside.latest);
}

function converted(type: string, operand: Timestamp | Count | undefined): Timestamp | Count | undefined {
  if (operand === undefined) return undefined;
  if (type === "Date") return startOfConstant({ unit: "day", isDate: true }, operand);
  if (type === "Int64") return operand.kind === "count" ? operand : undefined;
  if (type !== "DateTime" && type !== "DateTime64") return undefined;
  if (operand.kind === "count") return timestamp("dateTime", operand.value * 1000, operand.latest * 1000);
  return timestamp("dateTime", operand.ms, operand.latest);
}

/** Adds an interval, or a number of days or seconds, to a timestamp, or adds two numbers. */
function constantOfSum(
  { operator, left, right }: Extract<Expression, { kind: "binary" }>,
  nowMs: number,
): Timestamp | Count | undefined {
  const first = constantOf(left, nowMs);
  if (first === undefined) return undefined;
  const interval = intervalOf(right, nowMs);
  const sign = operator === "-" ? -1 : 1;
  if (interval !== undefined) {
    if (first.kind === "count" || (operator !== "+" && operator !== "-")) return undefined;
    return plusInterval(first, { unit: interval.unit, count: interval.count * sign });
  }
  const second = constantOf(right, nowMs);
  if (second?.kind !== "count") return undefined;
  if (first.kind === "count") return arithmetic(operator, first, second);
  if (operator !== "+" && operator !== "-") return undefined;
  return plusInterval(first, { unit: first.kind === "date" ? "day" : "second", count: second.value * sign });
}

function plusInterval({ kind, ms, latest }: Timestamp, by: { unit: IntervalUnit; count: number }): Timestamp {
  const finerThanDay = !["day", "week", "month", "quarter", "year"].includes(by.unit);
  return timestamp(finerThanDay ? "dateTime" : kind, plusUnits(ms, by), plusUnits(latest, by));
}

function arithmetic(operator: string, a: Count, b: Count): Count | undefined {
  switch (operator) {
    case "+":
      return count(a.value + b.value, a.latest + b.value);
    case "-":
      return count(a.value - b.value, a.latest - b.value);
    case "*":
      return count(a.value * b.value, a.latest * b.value);
    case "/":
      return count(a.value / b.value, a.latest / b.value);
    default:
      return undefined;
  }
}

/** Evaluates `INTERVAL n UNIT` or `toIntervalUnit(n)`. */
function intervalOf(expression: Expression, nowMs: number): { unit: IntervalUnit; count: number } | undefined {
  if (expression.kind === "interval") return intervalOfAmount(expression.amount, expression.unit, nowMs);
  if (expression.kind !== "call") return undefined;
  const unit = /^toInterval(\w+)$/i.exec(expression.name.text)?.[1]?.toLowerCase() as IntervalUnit | undefined;
  const [amount] = expression.arguments;
  return unit === undefined || amount === undefined ? undefined : intervalOfAmount(amount, unit, nowMs);
}

function intervalOfAmount(amount: Expression, unit: IntervalUnit, nowMs: number) {
  const value = constantOf(amount, nowMs);
  return value?.kind === "count" ? { unit, count: value.value } : undefined;
}

const TEXT = /^(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)(Z|[+-]\d\d:\d\d)?)?$/;

function timestampOfText(text: string): Timestamp | undefined {
  const found = TEXT.exec(text);
  if (found === null) return undefined;
  const [, day, time, zone] = found;
  const ms = Date.parse(`${day}T${time ?? "00:00"}${zone ?? "Z"}`);
  if (Number.isNaN(ms)) return undefined;
  return time === undefined ? timestamp("date", ms, ms + DAY_MS - 1) : timestamp("dateTime", ms);
}
