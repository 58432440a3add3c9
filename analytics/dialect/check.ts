import type { AnalyticsOf } from "../tables.ts";
import { type Clock, retentionProblems } from "./check/retention.ts";
import { functionProblems, inProblems, QUERY_BYTES_MAX, sizeProblems } from "./check/rules.ts";
import { shadowProblems, tableProblems } from "./check/tables.ts";
import { type Parsed, parse } from "./parse.ts";
import { QueryProblem } from "./problem.ts";
import type { Query } from "./tree.ts";
import { firstOf } from "./walk.ts";

/** Query that satisfies all rules that can be checked by its text. */
export interface CheckedQuery {
  /** Query text. The spans of the tree are offsets in this text. */
  readonly text: string;
  readonly of: AnalyticsOf;
  readonly query: Query;
}

/**
 * Parses a query and checks the rules of api-v2.md section 18.2. If the query violates several rules, only the first of these rules is
 * reported, at the place in the text where it is first violated. @throws QueryProblem
 */
export function readQuery(text: string, { of, ...clock }: Clock & { readonly of: AnalyticsOf }): CheckedQuery {
  const bytes = Buffer.byteLength(text);
  if (bytes > QUERY_BYTES_MAX) {
    const detail = `the query has ${bytes} bytes, more than ${QUERY_BYTES_MAX}`;
    throw new QueryProblem("invalid_analytics_query", detail, { start: 0, end: text.length });
  }
  const parsed = parse(text);
  const { query } = parsed;
  const rules: readonly (() => readonly QueryProblem[])[] = [
    () => sizeProblems(query),
    () => shadowProblems(query),
    () => [...noted(parsed, "in"), ...inProblems(query)],
    () => noted(parsed, "from"),
    // If two problems have the same position, the parser's problem takes precedence because it is more precise. For example, `db.table` is
    // reported as a database prefix, not as an unknown table `db`.
    () => [...noted(parsed, "tables"), ...tableProblems(query, of)],
    () => functionProblems(query),
    () => retentionProblems(query, clock),
  ];
  for (const rule of rules) {
    const problem = firstOf(rule());
    if (problem !== undefined) throw problem;
  }
  return { text, of, query };
}

const noted = ({ refused }: Parsed, rule: Parsed["refused"][number]["rule"]): readonly QueryProblem[] =>
  refused.filter((refusal) => refusal.rule === rule).map(({ problem }) => problem);
