import type { AggregateFunction } from "../functions/aggregates.ts";
import { invalidQuery } from "../problem.ts";
import type { Span } from "../tree.ts";
import { checkCondition } from "./conditions.ts";
import type { Aggregate, ResolvedExpression } from "./resolved.ts";
import { isNumeric, NOTHING, type Type, typeText } from "./types.ts";

export interface AggregateCall {
  /** Name as written in the query. */
  readonly written: string;
  /** ClickHouse spelling of the name. */
  readonly name: string;
  readonly entry: AggregateFunction;
  readonly parameters: readonly ResolvedExpression[] | undefined;
  readonly args: readonly ResolvedExpression[];
  readonly distinct: boolean;
  readonly filter: ResolvedExpression | undefined;
  readonly span: Span;
}

/** @throws QueryProblem if arguments or parameters are invalid for the function. */
export function aggregate(called: AggregateCall): Aggregate {
  const { name, entry, distinct, span } = called;
  const { args, filter } = splitCondition(called);
  const parameters = levels(called);
  checkArguments({ ...called, args });
  return {
    kind: "aggregate",
    name: entry.conditionalOf ?? name,
    parameters,
    arguments: args,
    distinct,
    filter,
    type: typeOf(
      entry,
      args.map((argument) => argument.type),
    ),
    span,
  };
}

/** Separates the condition of `sumIf(x, condition)` or of FILTER from the other arguments. */
function splitCondition({ entry, args, filter, written, span }: AggregateCall) {
  if (filter) checkCondition(filter);
  if (!entry.conditionalOf) return { args, filter };
  if (filter) throw invalidQuery(`${written} has a condition already: it takes no FILTER`, span);
  const requested = (entry.takes?.[0] ?? 1) + 1;
  const most = (entry.takes?.[1] ?? 1) + 1;
  const condition = args.at(-1);
  if (args.length < requested || args.length > most || !condition)
    throw invalidQuery(`${written} takes ${requested} arguments`, span);
  checkCondition(condition);
  return { args: args.slice(0, -1), filter: condition };
}

function levels({ entry, parameters, written, span }: AggregateCall): readonly number[] {
  const { max, byDefault } = entry.levels ?? { max: 0 };
  if (parameters === undefined && max === 0) return [];
  if (parameters === undefined && byDefault !== undefined) return [byDefault];
  if (parameters === undefined || parameters.length > max) {
    throw invalidQuery(`${written} takes ${max === 0 ? "no parameters" : `1 to ${max} levels, such as 0.5`}`, span);
  }
  return parameters.map((level) => {
    const value = level.kind === "literal" && isNumeric(level.type) ? Number(level.value) : Number.NaN;
    if (value >= 0 && value <= 1) return value;
    throw invalidQuery("a quantile's level is from 0 to 1", level.span);
  });
}

function checkArguments({ entry, args, distinct, written, span }: AggregateCall): void {
  const { takes: [least, most] = [1, 1], distinctMax = most, accepts = () => true } = entry;
  const [fewest, limit] = distinct ? [Math.max(least, 1), distinctMax] : [least, most];
  if (args.length < fewest || args.length > limit)
    throw invalidQuery(`${written} does not take ${args.length} arguments`, span);
  const type = args[0]?.type;
  if (!type || type.name === "Nothing") return;
  if (type.name === "Interval" || !accepts(type))
    throw invalidQuery(`${written} does not take ${typeText(type)}`, span);
}

function typeOf({ returns }: AggregateFunction, [type = NOTHING, other]: readonly Type[]): Type {
  if (typeof returns !== "function") return returns;
  return type.name === "Nothing" ? type : returns(type, other);
}
