import type { Span } from "../tree.ts";
import { refusal } from "./refusal.ts";
import type { Aggregate, AggregateName, ResolvedExpression } from "./resolved.ts";
import { arrayOf, FLOAT64, INT64, isDate, isNumeric, type Type, typeText, UINT64, widthOf, withNull } from "./types.ts";

interface Described {
  readonly name: AggregateName;
  /** Whether the last argument is a condition, as in `sumIf`. */
  readonly conditional: boolean;
}

const AGGREGATES: Readonly<Record<string, Described>> = {
  count: { name: "count", conditional: false },
  countif: { name: "count", conditional: true },
  sum: { name: "sum", conditional: false },
  sumif: { name: "sum", conditional: true },
  avg: { name: "avg", conditional: false },
  min: { name: "min", conditional: false },
  max: { name: "max", conditional: false },
  any: { name: "any", conditional: false },
  grouparray: { name: "groupArray", conditional: false },
  groupuniqarray: { name: "groupUniqArray", conditional: false },
  uniq: { name: "uniq", conditional: false },
  uniqexact: { name: "uniqExact", conditional: false },
  quantile: { name: "quantile", conditional: false },
};

/** Returns the aggregate function with this lower-case name. */
export const aggregateNamed = (lowerName: string): Described | undefined =>
  Object.hasOwn(AGGREGATES, lowerName) ? AGGREGATES[lowerName] : undefined;

export interface AggregateCall {
  /** Name as written in the query. */
  readonly written: string;
  readonly described: Described;
  readonly parameters: readonly ResolvedExpression[] | undefined;
  readonly args: readonly ResolvedExpression[];
  readonly distinct: boolean;
  readonly filter: ResolvedExpression | undefined;
  readonly span: Span;
}

/** @throws QueryProblem if arguments or parameters are invalid for the function. */
export function aggregate(called: AggregateCall): Aggregate {
  const { described, distinct, span } = called;
  const { args, filter } = splitCondition(called);
  const parameters = levels(called);
  checkArguments({ ...called, args });
  return {
    kind: "aggregate",
    name: described.name,
    parameters,
    arguments: args,
    distinct,
    filter,
    type: typeOf(described.name, args),
    span,
  };
}

/** Separates the condition of `sumIf(x, condition)` or of FILTER from the other arguments. */
function splitCondition({ described, args, filter, written, span }: AggregateCall) {
  if (filter) checkCondition(filter);
  if (!described.conditional) return { args, filter };
  if (filter) throw refusal(`${written} has a condition already: it takes no FILTER`, span);
  const requested = described.name === "count" ? 1 : 2;
  const condition = args.at(-1);
  if (args.length !== requested || !condition) throw refusal(`${written} takes ${requested} arguments`, span);
  checkCondition(condition);
  return { args: args.slice(0, -1), filter: condition };
}

function checkCondition({ type, span }: ResolvedExpression): void {
  if (!["UInt8", "Bool", "Nothing"].includes(type.name)) {
    throw refusal(`a condition is a comparison or a Bool, not ${typeText(type)}`, span);
  }
}

function levels({ described, parameters, written, span }: AggregateCall): readonly number[] {
  if (parameters === undefined) return described.name === "quantile" ? [0.5] : [];
  const [level] = parameters;
  if (described.name !== "quantile" || parameters.length !== 1 || level?.kind !== "literal") {
    throw refusal(`${written} takes no such parameters`, span);
  }
  const value = Number(level.value);
  if (!(value >= 0 && value <= 1) || !isNumeric(level.type))
    throw refusal("a quantile's level is from 0 to 1", level.span);
  return [value];
}

function checkArguments({ described: { name }, args, distinct, written, span }: AggregateCall): void {
  const several = name === "uniq" || name === "uniqExact" || (name === "count" && distinct);
  const [most, least] = [several ? 16 : 1, name === "count" && !distinct ? 0 : 1];
  if (args.length < least || args.length > most)
    throw refusal(`${written} does not take ${args.length} arguments`, span);
  const type = args[0]?.type;
  if (!type) return;
  const ofDates = isDate(type) && name === "quantile";
  const isSum = name === "sum" || name === "avg" || name === "quantile";
  if (type.name === "Interval" || (isSum && !isNumeric(type) && type.name !== "Nothing" && !ofDates)) {
    throw refusal(`${written} does not take ${typeText(type)}`, span);
  }
}

function typeOf(name: AggregateName, args: readonly ResolvedExpression[]): Type {
  const type = args[0]?.type ?? UINT64;
  switch (name) {
    case "count":
    case "uniq":
    case "uniqExact":
      return UINT64;
    case "sum":
      return type.name === "Nothing" ? type : withNull(sumType(type), type.nullable);
    case "avg":
      return type.name === "Nothing" ? type : withNull(FLOAT64, type.nullable);
    case "quantile":
      return isDate(type) || type.name === "Nothing" ? type : withNull(FLOAT64, type.nullable);
    case "min":
    case "max":
    case "any":
      return type;
    case "groupArray":
    case "groupUniqArray":
      return type.name === "Nothing" ? type : arrayOf(withNull(type, false));
  }
}

const sumType = (type: Type): Type => (type.name === "Float64" ? FLOAT64 : widthOf(type).signed ? INT64 : UINT64);
