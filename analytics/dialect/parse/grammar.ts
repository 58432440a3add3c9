import type { QueryProblem } from "../problem.ts";
import type { Aliased, Expression, Query } from "../tree.ts";
import type { Cursor } from "./cursor.ts";

/** Parser functions that refer to each other, because queries contain expressions and expressions contain queries. */
export interface Grammar {
  readonly cursor: Cursor;
  /** Parses an expression without an alias. */
  expression(): Expression;
  /** Parses SELECTs and set operators, up to the first token that does not belong to the query. */
  query(): Query;
  /** Continues a query whose first branch is already parsed. */
  continueQuery(first: Query): Query;
  /**
   * Records a violation of a rule with a lower precedence. It is reported only if no rule with a higher precedence is violated. After a
   * violation, the tree must not be used, even if the violation is not reported.
   */
  refuse(rule: DeferredRule, problem: QueryProblem): void;
}

/**
 * Rules of api-v2.md section 18.2 that the parser checks, although they have a lower precedence than the rule that the query must be
 * parsable.
 */
export type DeferredRule = "in" | "from" | "tables";

/** Parses `expression AS alias` with an optional alias. */
export function aliasable(grammar: Grammar): Expression {
  return withAlias(grammar, grammar.expression());
}

export function withAlias({ cursor }: Grammar, expression: Expression): Expression {
  if (!cursor.takeWords("as")) return expression;
  const alias = cursor.expectName("the alias");
  return { kind: "aliased", expression, alias, span: cursor.since(expression) } satisfies Aliased;
}

/** Parses one or more items, separated by commas. */
export function list<T>(cursor: Cursor, read: () => T): readonly T[] {
  const items = [read()];
  while (cursor.takeSign(",")) items.push(read());
  return items;
}
