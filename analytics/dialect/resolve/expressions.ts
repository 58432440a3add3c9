import { resolveFunction } from "../functions/entry.ts";
import { aggregateFunction, publishedFunction, scalarFunction, windowFunction } from "../functions/registry.ts";
import { invalidQuery } from "../problem.ts";
import type { BinaryOperator, Call, Case, Cast, Expression, In, Lambda, Order, Query, Span, Window } from "../tree.ts";
import { type AggregateCall, aggregate } from "./aggregates.ts";
import { type ArithmeticName, arithmetic, interval, negation } from "./arithmetic.ts";
import { sharedType } from "./common-type.ts";
import { type ComparisonName, comparable, comparison } from "./comparison.ts";
import { checkCondition, checkTruth, choice } from "./conditions.ts";
import { concatenation, conversion } from "./conversion.ts";
import { nullLiteral, numberLiteral, stringLiteral, valueLiteral } from "./literals.ts";
import { call, type ResolvedBody, type ResolvedExpression, type ResolvedOrder, type Variable } from "./resolved.ts";
import type { Scope } from "./scope.ts";
import { arrayOf, BOOL, FLOAT64, isInteger, NOTHING, type Type, typeText, UINT8, withNull, zoneOf } from "./types.ts";
import { type WindowCalled, windowCall } from "./windows.ts";

/** Scope in which an expression is resolved. */
export interface ExpressionContext {
  readonly scope: Scope;
  readonly isRawTime: (expression: ResolvedExpression) => boolean;
  readonly subquery: (query: Query) => ResolvedBody;
  /** Parameters of the enclosing lambdas, innermost last. */
  readonly lambdas: readonly { readonly name: string; readonly variable: Variable }[];
}

/** @throws QueryProblem with the span of an unknown name or an invalid operand. */
export function resolveExpression(expression: Expression, place: ExpressionContext): ResolvedExpression {
  const { span } = expression;
  const within = (one: Expression) => resolveExpression(one, place);
  const compared = { span, isRawTime: place.isRawTime };
  switch (expression.kind) {
    case "string":
      return stringLiteral(expression.value, span);
    case "number":
      return numberLiteral(expression.text, span);
    case "named":
      return namedLiteral(expression.value, span);
    case "name": {
      const [first, ...more] = expression.parts;
      const lambda = more.length === 0 && place.lambdas.findLast(({ name }) => name === first?.text);
      if (lambda) return lambda.variable;
      // In the definition of an alias, the parameters of a lambda that uses the alias are not visible.
      return place.scope.find(expression, (alias) => resolveExpression(alias, { ...place, lambdas: [] }));
    }
    case "star":
      throw invalidQuery("* cannot stand here", span);
    case "call":
      return resolveCall(expression, place);
    case "unary":
      return expression.operator === "not"
        ? negated(within(expression.operand), span)
        : minus(expression.operand, place, span);
    case "binary":
      return binary(expression.operator, [within(expression.left), within(expression.right)], compared);
    case "between": {
      const operand = within(expression.operand);
      const [low, high] = [within(expression.low), within(expression.high)];
      return expression.negated
        ? logical(
            "or",
            [comparison("less", [operand, low], compared), comparison("greater", [operand, high], compared)],
            span,
          )
        : logical(
            "and",
            [
              comparison("greaterOrEquals", [operand, low], compared),
              comparison("lessOrEquals", [operand, high], compared),
            ],
            span,
          );
    }
    case "in":
      return membership(expression, place);
    case "like":
      return like(expression, within);
    case "isNull":
      return call(expression.negated ? "isNotNull" : "isNull", [within(expression.operand)], UINT8, span, false);
    case "case":
      return choice(caseArguments(expression, place), span);
    case "cast":
      return resolveCast(expression, within);
    case "interval":
      return interval(within(expression.amount), expression.unit, span);
    case "subquery":
      return subquery(place.subquery(expression.query), expression.exists, span);
    case "array":
      return array(expression.elements.map(within), span);
    case "element":
      return element(within(expression.array), within(expression.index), span);
    case "lambda":
      throw invalidQuery("a lambda can only be the first argument of arrayFilter", span);
    case "aliased":
      return place.scope.define(expression.alias.text, () => within(expression.expression));
  }
}

function namedLiteral(value: "null" | "true" | "false" | "nan" | "inf", span: Span): ResolvedExpression {
  if (value === "null") return nullLiteral(span);
  if (value === "true" || value === "false") return valueLiteral(value === "true", BOOL, span);
  return valueLiteral(value === "nan" ? Number.NaN : Number.POSITIVE_INFINITY, FLOAT64, span);
}

/** Resolves a minus. A minus before a number literal belongs to the literal and affects its type. */
function minus(operand: Expression, place: ExpressionContext, span: Span): ResolvedExpression {
  if (operand.kind === "number") return numberLiteral(`-${operand.text}`, span);
  return negation(resolveExpression(operand, place), span);
}

const ARITHMETIC: Readonly<Partial<Record<BinaryOperator, ArithmeticName>>> = {
  "+": "plus",
  "-": "minus",
  "*": "multiply",
  "/": "divide",
  "%": "modulo",
};

const COMPARISONS: Readonly<Partial<Record<BinaryOperator, ComparisonName>>> = {
  "=": "equals",
  "!=": "notEquals",
  "<": "less",
  "<=": "lessOrEquals",
  ">": "greater",
  ">=": "greaterOrEquals",
};

function binary(
  operator: BinaryOperator,
  pair: readonly [ResolvedExpression, ResolvedExpression],
  compared: { readonly span: Span; readonly isRawTime: ExpressionContext["isRawTime"] },
): ResolvedExpression {
  const arithmeticName = ARITHMETIC[operator];
  if (arithmeticName) return arithmetic(arithmeticName, ...pair, compared.span);
  const comparisonName = COMPARISONS[operator];
  if (comparisonName) return comparison(comparisonName, pair, compared);
  return operator === "||"
    ? concatenation(pair, compared.span)
    : logical(operator === "and" ? "and" : "or", pair, compared.span);
}

/** Resolves AND, OR and XOR. Numbers other than 0 are true. The result is a Bool if any operand is a Bool. */
function logical(name: "and" | "or", operands: readonly ResolvedExpression[], span: Span): ResolvedExpression {
  operands.forEach(checkTruth);
  return call(name, operands, operands.some(({ type }) => type.name === "Bool") ? BOOL : UINT8, span);
}

function negated(operand: ResolvedExpression, span: Span): ResolvedExpression {
  checkTruth(operand);
  return call("not", [operand], operand.type.name === "Bool" ? BOOL : UINT8, span);
}

function membership(expression: In, place: ExpressionContext): ResolvedExpression {
  const operand = resolveExpression(expression.operand, place);
  const { negated: isNegated, span, of } = expression;
  const type = withNull(UINT8, operand.type.nullable);
  if (!isList(of)) {
    const body = place.subquery(of);
    const [column, ...more] = body.types;
    if (!column || more.length > 0) throw invalidQuery("the subquery of IN has one column", of.span);
    checkZones(operand.type, column, span);
    comparable([operand, { kind: "variable", number: -1, type: column, span: of.span }], {
      span,
      isRawTime: () => false,
    });
    return { kind: "in", negated: isNegated, operand, of: body, type, span };
  }
  const elements = of.map((one) => {
    const resolved = resolveExpression(one, place);
    checkZones(operand.type, resolved.type, one.span);
    return resolved.type.name === "Nothing"
      ? resolved
      : comparable([operand, resolved], { span: one.span, isRawTime: place.isRawTime })[1];
  });
  return { kind: "in", negated: isNegated, operand, of: elements, type, span };
}

/** Rejects a Date that is combined with a time in another zone, because a Date means midnight in one zone only. */
function checkZones(one: Type, other: Type, span: Span): void {
  const isMixed = (one.name === "Date") !== (other.name === "Date") && zoneOf(one) !== zoneOf(other);
  if (isMixed) throw invalidQuery(`IN compares no ${typeText(one)} with ${typeText(other)}`, span);
}

const isList = (of: In["of"]): of is readonly Expression[] => Array.isArray(of);

function like(expression: Extract<Expression, { kind: "like" }>, within: (one: Expression) => ResolvedExpression) {
  const { caseless, negated: isNegated, span } = expression;
  const operands = [within(expression.operand), within(expression.pattern)];
  const wrong = operands.find(({ type }) => type.name !== "String" && type.name !== "Nothing");
  if (wrong) throw invalidQuery(`LIKE takes Strings, not ${typeText(wrong.type)}`, wrong.span);
  const name = caseless ? (isNegated ? "notILike" : "ilike") : isNegated ? "notLike" : "like";
  return call(name, operands, UINT8, span);
}

/**
 * Converts CASE to alternating conditions and values. In a CASE with an operand, each condition compares the operand with the branch's
 * value.
 */
function caseArguments({ operand, branches, otherwise, span }: Case, place: ExpressionContext): ResolvedExpression[] {
  const compared = operand && resolveExpression(operand, place);
  const args = branches.flatMap(({ when, then }) => {
    const condition = resolveExpression(when, place);
    return [
      compared
        ? comparison("equals", [compared, condition], { span: when.span, isRawTime: place.isRawTime })
        : condition,
      resolveExpression(then, place),
    ];
  });
  return [...args, otherwise ? resolveExpression(otherwise, place) : nullLiteral(span)];
}

function resolveCast(
  { operand, type, span }: Cast,
  within: (one: Expression) => ResolvedExpression,
): ResolvedExpression {
  return conversion(within(operand), type, span);
}

function subquery(body: ResolvedBody, exists: boolean, span: Span): ResolvedExpression {
  const [column, ...more] = body.types;
  if (exists) return { kind: "subquery", exists, body, type: UINT8, span };
  if (!column || more.length > 0) throw invalidQuery("a subquery that is a value has one column", span);
  if (column.name === "Array") throw invalidQuery("a subquery that is a value cannot be an Array", span);
  return { kind: "subquery", exists, body, type: withNull(column, true), span };
}

function array(elements: readonly ResolvedExpression[], span: Span): ResolvedExpression {
  const type = elements.length === 0 ? NOTHING : sharedType(elements, span);
  return call("array", elements, arrayOf(type), span);
}

function element(of: ResolvedExpression, index: ResolvedExpression, span: Span): ResolvedExpression {
  if (of.type.name !== "Array") throw invalidQuery(`${typeText(of.type)} has no elements`, of.span);
  if (!isInteger(index.type))
    throw invalidQuery(`an element's place is a whole number, not ${typeText(index.type)}`, index.span);
  if (index.kind === "literal" && index.value === 0n)
    throw invalidQuery("the elements of an array are counted from 1", index.span);
  return call("arrayElement", [of, index], of.type.of, span, index.type.nullable || of.type.of.nullable);
}

function resolveCall(written: Call, place: ExpressionContext): ResolvedExpression {
  const { span } = written;
  const name = publishedFunction(written.name.text);
  if (name === undefined) throw invalidQuery(`there is no function ${written.name.text} here`, span);
  const entry = aggregateFunction(name);
  if (written.over || windowFunction(name)) return resolveWindow(written, name, place);
  if (entry) return aggregate(aggregateCall(written, name, entry, place));
  if (written.distinct || written.filter || written.parameters) {
    throw invalidQuery(`${written.name.text} is not an aggregate function`, span);
  }
  if (name === "arrayJoin") return arrayJoin(written, place);
  if (name === "arrayFilter") return arrayFilter(written, place);
  const args = written.arguments.map((argument) => resolveExpression(argument, place));
  return resolveFunction(name, scalarFunction(name), { name: written.name.text, args, span });
}

function aggregateCall(
  written: Call,
  name: string,
  entry: AggregateCall["entry"],
  place: ExpressionContext,
): AggregateCall {
  const within = (one: Expression) => resolveExpression(one, place);
  // In `count(*)`, the star represents all rows.
  const [only, ...more] = written.arguments;
  const isStar = name === "count" && only?.kind === "star" && more.length === 0;
  return {
    written: written.name.text,
    name,
    entry,
    parameters: written.parameters?.map(within),
    args: isStar && !written.distinct ? [] : written.arguments.map(within),
    distinct: written.distinct,
    filter: written.filter && within(written.filter),
    span: written.span,
  };
}

function resolveWindow(written: Call, name: string, place: ExpressionContext): ResolvedExpression {
  const { over, span } = written;
  if (!over) throw invalidQuery(`${written.name.text} needs OVER (…)`, span);
  const window = "text" in over ? place.scope.window(over) : over;
  const entry = aggregateFunction(name);
  const called: WindowCalled = {
    written: written.name.text,
    name,
    aggregate: entry && aggregate(aggregateCall(written, name, entry, place)),
    args: entry ? [] : written.arguments.map((argument) => resolveExpression(argument, place)),
    span,
  };
  if (!entry && (written.distinct || written.filter || written.parameters)) {
    throw invalidQuery(`${written.name.text} takes only arguments`, span);
  }
  return windowCall(called, resolvedWindow(window, place));
}

const resolvedWindow = (window: Window, place: ExpressionContext) => ({
  partitionBy: window.partitionBy.map((one) => resolveExpression(one, place)),
  orderBy: window.orderBy.map((one) => resolveOrder(one, resolveExpression(one.expression, place))),
  frame: window.frame && {
    unit: window.frame.unit,
    start: bound(window.frame.start, place),
    end: bound(window.frame.end, place),
    span: window.frame.span,
  },
});

function bound(written: NonNullable<Window["frame"]>["start"], place: ExpressionContext) {
  if (!("by" in written)) return written;
  const by = resolveExpression(written.by, place);
  if (by.kind !== "literal" || typeof by.value !== "bigint" || by.value < 0n) {
    throw invalidQuery("a frame's bound is a whole number", written.by.span);
  }
  return { kind: written.kind, by: by.value };
}

/** Resolves an ORDER BY item; the caller handles WITH FILL. */
export function resolveOrder(written: Order, expression: ResolvedExpression): ResolvedOrder {
  if (expression.type.name === "Interval") throw invalidQuery("an interval has no order", written.span);
  return { expression, descending: written.descending, nullsFirst: written.nulls === "first", fill: undefined };
}

function arrayJoin({ arguments: args, span }: Call, place: ExpressionContext): ResolvedExpression {
  const [operand, ...more] = args;
  if (!operand || more.length > 0) throw invalidQuery("arrayJoin takes 1 argument", span);
  if (place.lambdas.length > 0) throw invalidQuery("arrayJoin cannot stand within a lambda", span);
  return place.scope.arrayJoin(resolveExpression(operand, place), span);
}

function arrayFilter({ arguments: args, span }: Call, place: ExpressionContext): ResolvedExpression {
  const [lambda, operand, ...more] = args;
  if (lambda?.kind !== "lambda" || !operand || more.length > 0) {
    throw invalidQuery("arrayFilter takes a lambda and one array", span);
  }
  const array = resolveExpression(operand, place);
  if (array.type.name !== "Array")
    throw invalidQuery(`arrayFilter takes an Array, not ${typeText(array.type)}`, operand.span);
  const { variable, condition } = resolveLambda(lambda, array.type.of, place);
  checkCondition(condition);
  return { kind: "arrayFilter", array, variable: variable.number, condition, type: array.type, span };
}

function resolveLambda({ parameters, body, span }: Lambda, element: Type, place: ExpressionContext) {
  const [parameter, ...more] = parameters;
  if (!parameter || more.length > 0) throw invalidQuery("the lambda of arrayFilter has one parameter", span);
  const variable: Variable = { kind: "variable", number: place.lambdas.length, type: element, span: parameter.span };
  const inside = { ...place, lambdas: [...place.lambdas, { name: parameter.text, variable }] };
  return { variable, condition: resolveExpression(body, inside) };
}
