import type { ErrorKind } from "../../../core/errors.ts";
import type { Span } from "./tree.ts";

/** What is wrong with a query by its text alone, as api-v2.md section 18.2 divides it. */
export type QueryProblemKind = Extract<
  ErrorKind,
  | "invalid_analytics_query"
  | "invalid_analytics_query_type"
  | "invalid_analytics_table"
  | "invalid_analytics_function"
  | "query_range_exceeds_retention"
>;

/** A query is refused because of its text, before any store has seen it. `explainProblem` says it in words. */
export class QueryProblem extends Error {
  override name = "QueryProblem";
  readonly kind: QueryProblemKind;
  /** What is wrong and what to write instead: begins in lower case, without a full stop and without the place. */
  readonly detail: string;
  /** The part of the text that the detail is about. */
  readonly span: Span;

  constructor(kind: QueryProblemKind, detail: string, span: Span) {
    super(detail);
    this.kind = kind;
    this.detail = detail;
    this.span = span;
  }
}

/** Returns what the caller is told: the place and the detail, such as "Line 2, column 7: …". `text` is the caller's query. */
export function explainProblem(problem: QueryProblem, text: string): string {
  const { line, column } = positionOf(text, problem.span.start);
  return `Line ${line}, column ${column}: ${problem.detail}`;
}

/** Returns line and column, both counted from 1. A column is a code point, so an emoji counts once. */
export function positionOf(text: string, offset: number): { line: number; column: number } {
  const lines = text.slice(0, offset).split("\n");
  return { line: lines.length, column: Array.from(lines.at(-1) ?? "").length + 1 };
}

/** Returns what the caller wrote, in a form that fits into a sentence: quoted, and cut when it is long. */
export function quote(written: string): string {
  const points = Array.from(written.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " "));
  return `\`${points.length > 40 ? `${points.slice(0, 39).join("")}…` : points.join("")}\``;
}
