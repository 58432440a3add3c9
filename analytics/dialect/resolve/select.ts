import { invalidQuery } from "../problem.ts";
import type { Expression, LimitBy, Name, Order, Select, Span } from "../tree.ts";
import { checkTruth } from "./conditions.ts";
import { type ExpressionContext, resolveExpression, resolveOrder } from "./expressions.ts";
import { checkGrouping } from "./grouping.ts";
import type {
  ResolvedExpression,
  ResolvedFill,
  ResolvedLimitBy,
  ResolvedOrder,
  ResolvedSelect,
  Source,
} from "./resolved.ts";
import { contains, isConstant } from "./subexpressions.ts";
import { isDate, isNumeric, typeText } from "./types.ts";
import { type Naming, writtenName } from "./written.ts";

export interface NamedSelect {
  readonly body: ResolvedSelect;
  readonly names: readonly string[];
}

interface NamedColumn {
  readonly name: string;
  readonly expression: ResolvedExpression;
}

/** Context for resolving a SELECT whose FROM is already resolved. `text` is the query text. */
export interface QueryScope {
  readonly from: Source;
  readonly place: ExpressionContext;
  readonly text: string;
}

export function resolveSelect(select: Select, { from, place, text }: QueryScope): NamedSelect {
  const within = (expression: Expression) => resolveExpression(expression, place);
  let subqueries = 0;
  const naming = { nameOf: (name: Name) => place.scope.written(name), text, nextSubquery: () => ++subqueries };
  const columns = select.columns.flatMap((column) => resolveColumn(column, place, naming));
  const expressions = columns.map(({ expression }) => expression);
  const where = select.where && condition(within(select.where));
  const groupBy = select.groupBy.map((one) => atPosition(one, expressions) ?? within(one));
  const having = select.having && condition(within(select.having));
  const orderBy = select.orderBy.map((one) => order(one, expressions, place));
  const limitBy = select.limitBy && resolveLimitBy(select.limitBy, expressions, place);
  const parts = { expressions, where, groupBy, having, orderBy, limitBy };
  const aggregated = groupBy.length > 0 || hasAggregate(parts);
  checkGrouping({ ...parts, arrayJoins: place.scope.arrayJoins, aggregated }, place.scope.identities);
  const body: ResolvedSelect = {
    kind: "select",
    span: select.span,
    distinct: select.distinct,
    columns: expressions,
    types: expressions.map(({ type }) => type),
    from,
    arrayJoins: place.scope.arrayJoins,
    where,
    aggregated,
    groupBy,
    having,
    orderBy,
    limitBy,
    limit: rows(select.limit, "LIMIT"),
    offset: rows(select.offset, "OFFSET"),
  };
  return { body, names: columns.map(({ name }) => name) };
}

function resolveColumn(column: Expression, place: ExpressionContext, naming: Naming): readonly NamedColumn[] {
  if (column.kind === "star") return place.scope.star(column);
  const expression = resolveExpression(column, place);
  if (expression.type.name === "Interval") throw invalidQuery("an interval cannot be a column", column.span);
  return [{ name: writtenName(column, naming), expression }];
}

function condition(expression: ResolvedExpression): ResolvedExpression {
  checkTruth(expression);
  return expression;
}

/**
 * Returns the column to which a number in GROUP BY, ORDER BY or LIMIT BY refers by its position; `undefined` if the expression is not a
 * number.
 */
function atPosition(written: Expression, columns: readonly ResolvedExpression[]): ResolvedExpression | undefined {
  const position = positionOf(written);
  if (position === undefined) return undefined;
  const column = columns[position - 1];
  if (!column) throw invalidQuery(`there is no column ${position}`, written.span);
  return column;
}

/**
 * Returns the column position that a constant stands for. In GROUP BY, ORDER BY and LIMIT BY, ClickHouse reads true as 1 and false as 0.
 */
function positionOf(written: Expression): number | undefined {
  if (written.kind === "number") return /^\d+$/.test(written.text) ? Number(written.text) : undefined;
  return written.kind === "named" ? TRUTH_POSITIONS.get(written.value) : undefined;
}

const TRUTH_POSITIONS: ReadonlyMap<string, number> = new Map([
  ["true", 1],
  ["false", 0],
]);

function hasAggregate(parts: {
  readonly expressions: readonly ResolvedExpression[];
  readonly having: ResolvedExpression | undefined;
  readonly orderBy: readonly ResolvedOrder[];
  readonly limitBy: ResolvedLimitBy | undefined;
}): boolean {
  const all = [
    ...parts.expressions,
    ...(parts.having ? [parts.having] : []),
    ...parts.orderBy.map((one) => one.expression),
    ...(parts.limitBy?.by ?? []),
  ];
  return all.some((one) => contains(one, ({ kind }) => kind === "aggregate"));
}

function resolveLimitBy(
  { limit, offset, by }: LimitBy,
  columns: readonly ResolvedExpression[],
  place: ExpressionContext,
): ResolvedLimitBy {
  const keys = by.map((one) => atPosition(one, columns) ?? resolveExpression(one, place));
  return {
    limit: rows(limit, "LIMIT") ?? 0n,
    offset: rows(offset, "OFFSET") ?? 0n,
    by: keys.filter((key) => !isConstant(key)),
  };
}

function order(written: Order, columns: readonly ResolvedExpression[], place: ExpressionContext): ResolvedOrder {
  const expression = atPosition(written.expression, columns) ?? resolveExpression(written.expression, place);
  const resolved = resolveOrder(written, expression);
  return { ...resolved, fill: written.fill && fill(written, expression, place) };
}

function fill(
  { fill: written, descending, span }: Order,
  of: ResolvedExpression,
  place: ExpressionContext,
): ResolvedFill | undefined {
  if (!written) return undefined;
  if (!isDate(of.type) && !isNumeric(of.type)) throw invalidQuery(`WITH FILL cannot fill ${typeText(of.type)}`, span);
  if (of.type.nullable) throw invalidQuery("WITH FILL cannot fill what may be null", span);
  const bound = (one: Expression | undefined) => one && fillBound(resolveExpression(one, place), of);
  const [from, to] = [bound(written.from), bound(written.to)];
  if (isAfter(descending ? to : from, descending ? from : to)) {
    throw invalidQuery("FROM of WITH FILL lies behind TO", written.span);
  }
  const step = written.step && resolveExpression(written.step, place);
  if (step) checkStep(step, { of, descending });
  return { span: written.span, from, to, step };
}

/** Checks a bound of WITH FILL, which must have the type of the filled expression. */
function fillBound(bound: ResolvedExpression, of: ResolvedExpression): ResolvedExpression {
  const fits = isDate(of.type) ? bound.type.name === of.type.name : isNumeric(bound.type);
  if (!fits)
    throw invalidQuery(`WITH FILL of ${typeText(of.type)} has no bound of ${typeText(bound.type)}`, bound.span);
  if (contains(bound, ({ kind }) => NOT_CONSTANT.includes(kind)))
    throw invalidQuery("a bound of WITH FILL is constant", bound.span);
  return bound;
}

const NOT_CONSTANT: readonly ResolvedExpression["kind"][] = ["column", "arrayJoin", "aggregate", "window", "subquery"];

const isAfter = (one: ResolvedExpression | undefined, other: ResolvedExpression | undefined): boolean =>
  one?.kind === "literal" && other?.kind === "literal" && Number(one.value) > Number(other.value);

function checkStep(
  step: ResolvedExpression,
  { of, descending }: { readonly of: ResolvedExpression; readonly descending: boolean },
): void {
  const amount = step.kind === "call" && step.name === "toInterval" ? step.arguments[0] : step;
  const value = amount?.kind === "literal" ? Number(amount.value) : Number.NaN;
  if (Number.isNaN(value)) throw invalidQuery("a step of WITH FILL is a literal", step.span);
  if (value === 0 || value < 0 !== descending) {
    throw invalidQuery(`a step of WITH FILL is ${descending ? "negative" : "positive"} here`, step.span);
  }
  if (step.type.name !== "Interval") return;
  if (!isDate(of.type)) throw invalidQuery("a step of numbers is a number", step.span);
  if (of.type.name === "Date" && !["day", "week", "month", "quarter", "year"].includes(step.type.unit)) {
    throw invalidQuery("a step of a Date is at least a day", step.span);
  }
}

/** Resolves a row count. */
function rows(written: Expression | undefined, clause: string): bigint | undefined {
  if (written === undefined) return undefined;
  if (written.kind !== "number" || !/^\d+$/.test(written.text)) throw invalidRowCount(clause, written.span);
  const count = BigInt(written.text);
  if (count >= 2n ** 63n) throw invalidRowCount(clause, written.span);
  return count;
}

const invalidRowCount = (clause: string, span: Span) => invalidQuery(`${clause} takes a whole number of rows`, span);
