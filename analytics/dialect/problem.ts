import type { ErrorKind } from "../../core/errors.ts";
import type { Span } from "./tree.ts";

/** Error kinds for problems in the query text (api-v2.md section 18.2). */
export type QueryProblemKind = Extract<
  ErrorKind,
  | "invalid_analytics_query"
  | "invalid_analytics_query_type"
  | "invalid_analytics_table"
  | "invalid_analytics_function"
  | "query_range_exceeds_retention"
>;

/** Rejection of a query because of its text, before it reaches a store. `explainProblem` formats the message. */
export class QueryProblem extends Error {
  override name = "QueryProblem";
  readonly kind: QueryProblemKind;
  /** Problem and suggested fix. The text begins in lower case, and contains neither a final period nor the position. */
  readonly detail: string;
  /** Source range of the problem. */
  readonly span: Span;

  constructor(kind: QueryProblemKind, detail: string, span: Span) {
    super(detail);
    this.kind = kind;
    this.detail = detail;
    this.span = span;
  }
}

/** Problem of a query that makes no sense, or for which a database cannot return the result that ClickHouse defines. */
export const invalidQuery = (detail: string, span: Span): QueryProblem =>
  new QueryProblem("invalid_analytics_query", detail, span);

/** Returns the message for the caller: position and detail, such as "Line 2, column 7: …". `text` is the query text. */
export function explainProblem(problem: QueryProblem, text: string): string {
  const { line, column } = positionOf(text, problem.span.start);
  return `Line ${line}, column ${column}: ${problem.detail}`;
}

/** Returns line and column, both counted from 1. A column is one code point, so an emoji counts once. */
export function positionOf(text: string, offset: number): { line: number; column: number } {
  const lines = text.slice(0, offset).split("\n");
  return { line: lines.length, column: Array.from(lines.at(-1) ?? "").length + 1 };
}

/** Quotes source text for use in a sentence, truncated if it is long. */
export function quote(written: string): string {
  const points = Array.from(written.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " "));
  return `\`${points.length > 40 ? `${points.slice(0, 39).join("")}…` : points.join("")}\``;
}
