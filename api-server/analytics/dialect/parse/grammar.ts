import type { QueryProblem } from "../problem.ts";
import type { Aliased, Expression, Query } from "../tree.ts";
import type { Cursor } from "./cursor.ts";

/** What the parts of the parser share, because queries contain expressions and expressions contain queries. */
export interface Grammar {
  readonly cursor: Cursor;
  /** An expression without an alias. */
  expression(): Expression;
  /** SELECTs with what combines them, up to what does not belong to them. */
  query(): Query;
  /** The same, when the first of them was read already. */
  continueQuery(first: Query): Query;
  /** Notes a problem that a later rule answers, when no earlier rule has one. The tree is then of no use. */
  refuse(rule: DeferredRule, problem: QueryProblem): void;
}

/** The rules of api-v2.md section 18.2 whose violations the parser can see, and which come after "it parses". */
export type DeferredRule = "in" | "from" | "tables";

/** `expression AS alias`, where the alias may be missing. */
export function aliasable(grammar: Grammar): Expression {
  return withAlias(grammar, grammar.expression());
}

export function withAlias({ cursor }: Grammar, expression: Expression): Expression {
  if (!cursor.takeWords("as")) return expression;
  const alias = cursor.expectName("the alias");
  return { kind: "aliased", expression, alias, span: cursor.since(expression) } satisfies Aliased;
}

/** One or more, with commas between them. */
export function list<T>(cursor: Cursor, read: () => T): readonly T[] {
  const items = [read()];
  while (cursor.takeSign(",")) items.push(read());
  return items;
}
