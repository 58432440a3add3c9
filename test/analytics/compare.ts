import type { CorpusQuery } from "./corpus/query.ts";

/** Rows by position, because names may be equal. Types only where the store tells them. */
export interface Answer {
  readonly names: readonly string[];
  readonly types?: readonly string[];
  readonly rows: readonly (readonly unknown[])[];
}

/**
 * For `JSON.parse`: whole numbers become bigint, so that those beyond 2^53 stay exact; other numbers stay as they are.
 */
export function readCell(_key: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value !== "number") return value;
  if (/^-?\d+$/.test(context?.source ?? "")) return BigInt(context?.source ?? "");
  return Number.isInteger(value) ? BigInt(value) : value;
}

/** Returns the first difference in words, or undefined. */
export function differenceOf(expected: Answer, got: Answer, query: CorpusQuery): string | undefined {
  if (expected.names.join("\n") !== got.names.join("\n")) {
    return `names: ${JSON.stringify(expected.names)} on ClickHouse, ${JSON.stringify(got.names)} here`;
  }
  if (expected.rows.length !== got.rows.length) {
    return `rows: ${expected.rows.length} on ClickHouse, ${got.rows.length} here`;
  }
  const [wanted, found] = [expected, got].map(({ rows }) => normalised(rows, query));
  const at = (wanted ?? []).findIndex((row, index) => !isSame(row, found?.[index], query.approximate === true));
  return at === -1 ? undefined : `row ${at}: ${textOf(wanted?.[at])} on ClickHouse, ${textOf(found?.[at])} here`;
}

export const textOf = (value: unknown): string =>
  JSON.stringify(value, (_, each: unknown) => (typeof each === "bigint" ? `${each}n` : each)) ?? "nothing";

function normalised(rows: Answer["rows"], query: CorpusQuery): Answer["rows"] {
  const cells = query.arraysAsSets === true ? rows.map((row) => row.map(sortedArray)) : rows;
  return isOrdered(query.query) ? cells : [...cells].sort((one, other) => compareTexts(textOf(one), textOf(other)));
}

const sortedArray = (value: unknown): unknown =>
  Array.isArray(value) ? [...value].sort((one, other) => compareTexts(textOf(one), textOf(other))) : value;

const compareTexts = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);

function isSame(one: unknown, other: unknown, approximate: boolean): boolean {
  if (Array.isArray(one)) {
    return (
      Array.isArray(other) &&
      one.length === other.length &&
      one.every((value, index) => isSame(value, other[index], approximate))
    );
  }
  if (approximate && isNumber(one) && isNumber(other)) {
    return Math.abs(Number(one) - Number(other)) <= 1e-9 * Math.abs(Number(one));
  }
  return Object.is(one, other);
}

const isNumber = (value: unknown): value is number | bigint => typeof value === "number" || typeof value === "bigint";

/** Whether the outermost SELECT has an ORDER BY: one outside of parentheses, strings and quoted names. */
export function isOrdered(query: string): boolean {
  const bare = query.replace(/'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*/g, "''");
  let outside = "";
  let depth = 0;
  for (const letter of bare) {
    if (letter === "(") depth++;
    if (depth === 0) outside += letter;
    if (letter === ")") depth--;
  }
  // After a set operation it belongs to the last branch.
  return /\border\s+by\b/i.test(outside) && !/\b(union|except)\b/i.test(outside);
}
