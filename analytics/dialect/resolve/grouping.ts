import { invalidQuery } from "../problem.ts";
import type { Identities } from "./identity.ts";
import type { ResolvedArrayJoin, ResolvedExpression, ResolvedLimitBy, ResolvedOrder } from "./resolved.ts";
import { childrenOf, contains } from "./subexpressions.ts";

/** Parts of a SELECT to which aggregation rules apply. */
export interface Grouped {
  readonly expressions: readonly ResolvedExpression[];
  readonly arrayJoins: readonly ResolvedArrayJoin[];
  readonly where: ResolvedExpression | undefined;
  readonly groupBy: readonly ResolvedExpression[];
  readonly having: ResolvedExpression | undefined;
  readonly orderBy: readonly ResolvedOrder[];
  readonly limitBy: ResolvedLimitBy | undefined;
  readonly aggregated: boolean;
}

/** @throws QueryProblem if plain columns, aggregates and windows are mixed where this is invalid. */
export function checkGrouping(parts: Grouped, identities: Identities): void {
  const { expressions, arrayJoins, where, groupBy, having, orderBy, limitBy, aggregated } = parts;
  for (const one of [...arrayJoins.map(({ operand }) => operand), ...groupBy, ...(where ? [where] : [])]) {
    refuse(one, "aggregate", "an aggregate function cannot be used in WHERE, GROUP BY or arrayJoin");
    refuse(one, "window", "a window function cannot be used in WHERE, GROUP BY or arrayJoin");
  }
  if (having) refuse(having, "window", "a window function cannot be used in HAVING");
  const sorted = [...orderBy.map(({ expression }) => expression), ...(limitBy?.by ?? [])];
  const after = [...expressions, ...(having ? [having] : []), ...sorted];
  const keys = new Set(groupBy.map((key) => identities.of(key)));
  const seen = new Set<ResolvedExpression>();
  for (const one of after) checkLevels(one, { keys, aggregated, identities, seen });
}

function refuse(within: ResolvedExpression, kind: "aggregate" | "window", detail: string): void {
  let found: ResolvedExpression | undefined;
  contains(within, (one) => {
    if (one.kind === kind) found ??= one;
    return found !== undefined;
  });
  if (found) throw invalidQuery(detail, found.span);
}

interface Levels {
  readonly keys: ReadonlySet<number>;
  readonly aggregated: boolean;
  readonly identities: Identities;
  readonly seen: Set<ResolvedExpression>;
}

/** Checks that a column outside an aggregate function is part of a GROUP BY key. */
function checkLevels(expression: ResolvedExpression, levels: Levels): void {
  if (levels.seen.has(expression)) return;
  levels.seen.add(expression);
  if (expression.kind === "aggregate") {
    for (const child of childrenOf(expression)) {
      refuse(child, "aggregate", "an aggregate function cannot be used within another");
      refuse(child, "window", "a window function cannot be used within an aggregate function");
    }
    return;
  }
  if (levels.aggregated && levels.keys.has(levels.identities.of(expression))) return;
  if (levels.aggregated && (expression.kind === "column" || expression.kind === "arrayJoin")) {
    throw invalidQuery("this is neither aggregated nor in GROUP BY", expression.span);
  }
  for (const child of childrenOf(expression)) {
    if (expression.kind === "window") refuse(child, "window", "a window function cannot be used within another");
    checkLevels(child, levels);
  }
}
