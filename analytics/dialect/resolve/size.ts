import { invalidQuery } from "../problem.ts";
import type { ResolvedBody, ResolvedExpression } from "./resolved.ts";
import { childrenOf } from "./subexpressions.ts";

/** Maximum expressions after alias expansion. Nested aliases can double the size at each level. */
const EXPRESSIONS_MAX = 10_000;

/** @throws QueryProblem if a body exceeds the maximum after alias expansion. */
export function checkSize(body: ResolvedBody): void {
  if (body.kind === "set") return;
  const sizes = new Map<ResolvedExpression, number>();
  const { columns, arrayJoins, where, groupBy, having, orderBy } = body;
  const all = [...columns, ...arrayJoins, where, ...groupBy, having, ...orderBy.map(({ expression }) => expression)];
  let total = 0;
  for (const expression of all) {
    if (expression) total += sizeOf(expression, sizes);
    if (total > EXPRESSIONS_MAX) {
      throw invalidQuery(`with aliases replaced the query has more than ${EXPRESSIONS_MAX} expressions`, body.span);
    }
  }
}

/** Returns the expanded size; each object is visited once. */
function sizeOf(expression: ResolvedExpression, sizes: Map<ResolvedExpression, number>): number {
  const known = sizes.get(expression);
  if (known !== undefined) return known;
  const size = childrenOf(expression).reduce((sum, child) => sum + sizeOf(child, sizes), 1);
  sizes.set(expression, size);
  return size;
}
