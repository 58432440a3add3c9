import { type AnalyticsOf, PUBLIC_TABLES } from "../../tables.ts";
import { QueryProblem, quote } from "../problem.ts";
import type { CommonTable, Query, Select, TableReference } from "../tree.ts";
import { queriesIn, walk } from "../walk.ts";

/**
 * Reports CTEs that have the name of a public table of either procedure, ignoring case, because such a CTE hides the table, or looks as if
 * it did.
 */
export function shadowProblems(query: Query): readonly QueryProblem[] {
  const problems: QueryProblem[] = [];
  walk(query, (part) => {
    if (part.kind !== "select") return true;
    for (const { name } of part.with) {
      if (!PUBLIC_TABLES.some((table) => table.name === name.text.toLowerCase())) continue;
      const detail = `${quote(name.text)} is the name of a table; what WITH defines needs another one`;
      problems.push(new QueryProblem("invalid_analytics_table", detail, name.span));
    }
    return true;
  });
  return problems;
}

/** Reports tables after FROM and JOIN that are neither public tables of the procedure nor visible CTEs. */
export function tableProblems(query: Query, of: AnalyticsOf): readonly QueryProblem[] {
  const problems: QueryProblem[] = [];
  check(query, new Set());
  return problems;

  function check(inside: Query, visible: ReadonlySet<string>): void {
    if (inside.kind === "select") {
      checkSelect(inside, visible);
    } else {
      // In a set operation such as UNION, the CTEs of the first branch are visible in all branches.
      const seen = union(visible, definedBy(firstSelect(inside).with));
      check(inside.left, seen);
      check(inside.right, seen);
    }
  }

  function checkSelect(select: Select, outer: ReadonlySet<string>): void {
    const seen = union(outer, definedBy(select.with));
    for (const common of select.with) {
      // A CTE sees all other CTEs, including later ones, but not itself.
      const others = select.with.filter((other) => other !== common);
      for (const query of queriesIn(common.is)) check(query, union(outer, definedBy(others)));
    }
    const { with: _, ...rest } = select;
    const clauses = Object.values(rest);
    for (const table of tablesIn(clauses)) {
      const problem = seen.has(table.name.text) ? undefined : problemOf(table, of);
      if (problem !== undefined) problems.push(problem);
    }
    for (const query of queriesIn(clauses)) check(query, seen);
  }
}

function problemOf({ name }: TableReference, of: AnalyticsOf): QueryProblem | undefined {
  const table = PUBLIC_TABLES.find((candidate) => candidate.name === name.text);
  if (table?.of === of) return undefined;
  const other = of === "verifications" ? "analytics.getRatelimits" : "analytics.getVerifications";
  const detail =
    table === undefined ? `there is no table ${quote(name.text)}` : `${quote(name.text)} is read by ${other}`;
  return new QueryProblem("invalid_analytics_table", detail, name.span);
}

/** Returns the tables that a SELECT reads directly, without those of its subqueries. */
function tablesIn(clauses: unknown): readonly TableReference[] {
  const found: TableReference[] = [];
  walk(clauses, (part) => {
    if (part.kind === "table") found.push(part);
    return part.kind !== "select" && part.kind !== "set";
  });
  return found;
}

const definedBy = (common: readonly CommonTable[]): ReadonlySet<string> =>
  new Set(common.filter(({ is }) => is.kind !== "expression").map(({ name }) => name.text));

const union = (a: ReadonlySet<string>, b: ReadonlySet<string>): ReadonlySet<string> => new Set([...a, ...b]);

function firstSelect(query: Query): Select {
  let first = query;
  while (first.kind === "set") first = first.left;
  return first;
}
