import { invalidQuery } from "../problem.ts";
import type { Expression, Order, Select, Span, Window } from "../tree.ts";
import type { Alias } from "./scope.ts";

/** Returns the aliases that a SELECT defines: in its columns, in its WITH, or within its other clauses. */
export function aliasesOf(select: Select): ReadonlyMap<string, Alias> {
  const aliases = new Map<string, Alias>();
  const add = (name: string, expression: Expression, span: Span) => {
    const known = aliases.get(name);
    if (known && saying(known.expression) !== saying(expression)) {
      throw invalidQuery(`the alias ${name} is defined twice, differently`, span);
    }
    aliases.set(name, { expression, span });
  };
  for (const { name, is, span } of select.with) if (is.kind === "expression") add(name.text, is.expression, span);
  for (const expression of expressionsOf(select)) collect(expression, add);
  return aliases;
}

function collect(expression: Expression, add: (name: string, expression: Expression, span: Span) => void): void {
  if (expression.kind === "aliased") add(expression.alias.text, expression.expression, expression.span);
  for (const part of partsOf(expression)) collect(part, add);
}

/** Returns a key that is equal for equal expressions, independent of their position. */
const saying = (expression: Expression): string =>
  JSON.stringify(expression, (key, value: unknown) => (key === "span" ? undefined : value));

function expressionsOf(select: Select): readonly Expression[] {
  return [
    ...select.with.flatMap(({ is }) => (is.kind === "expression" ? [is.expression] : [])),
    ...select.columns,
    ...present(select.where),
    ...select.groupBy,
    ...present(select.having),
    ...select.windows.flatMap(({ window }) => partsOfWindow(window)),
    ...partsOfOrder(select.orderBy),
    ...(select.limitBy?.by ?? []),
  ];
}

/** Returns the direct subexpressions, except those in subqueries and lambdas, which have scopes of their own. */
function partsOf(expression: Expression): readonly Expression[] {
  switch (expression.kind) {
    case "call":
      return [
        ...expression.arguments,
        ...present(expression.filter),
        ...(expression.over && !("text" in expression.over) ? partsOfWindow(expression.over) : []),
      ];
    case "unary":
    case "cast":
    case "isNull":
      return [expression.operand];
    case "binary":
      return [expression.left, expression.right];
    case "between":
      return [expression.operand, expression.low, expression.high];
    case "in":
      return Array.isArray(expression.of) ? [expression.operand, ...expression.of] : [expression.operand];
    case "like":
      return [expression.operand, expression.pattern];
    case "case":
      return [
        ...present(expression.operand),
        ...expression.branches.flatMap(({ when, then }) => [when, then]),
        ...present(expression.otherwise),
      ];
    case "interval":
      return [expression.amount];
    case "array":
      return expression.elements;
    case "element":
      return [expression.array, expression.index];
    case "aliased":
      return [expression.expression];
    case "string":
    case "number":
    case "named":
    case "name":
    case "star":
    case "subquery":
    case "lambda":
      return [];
  }
}

const present = (expression: Expression | undefined): readonly Expression[] =>
  expression === undefined ? [] : [expression];

const partsOfOrder = (orders: readonly Order[]): readonly Expression[] => orders.map(({ expression }) => expression);

const partsOfWindow = ({ partitionBy, orderBy }: Window): readonly Expression[] => [
  ...partitionBy,
  ...partsOfOrder(orderBy),
];
