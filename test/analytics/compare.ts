import type { CorpusQuery } from "./corpus/query.ts";
import { parseSpelt, rowsOf, textOf, tokensOf } from "./json-text.ts";

/** How answers to a query compare. */
export type Comparing = Pick<CorpusQuery, "query" | "approximate" | "arraysAsSets"> & {
  /** Rows that compare equal may come in any order, so that no order is compared. */
  readonly unordered?: boolean;
};

const APPROXIMATE = 1e-9;

/** Compares the JSON of rows, letter by letter where the query determines the order. Returns the first difference in words, or undefined. */
export function differenceOf(
  expected: { readonly name: string; readonly rows: readonly string[] },
  got: { readonly name: string; readonly rowsJson: string },
  query: Comparing,
): string | undefined {
  const [wanted, found] = [normalised(expected.rows, query), normalised(rowsOf(got.rowsJson), query)];
  if (wanted.length !== found.length) {
    return `rows: ${wanted.length} on ${expected.name}, ${found.length} on ${got.name}`;
  }
  const same = query.approximate === true ? isNear : Object.is;
  const at = wanted.findIndex((row, index) => !same(row, found[index] ?? ""));
  return at === -1 ? undefined : `row ${at}: ${wanted[at]} on ${expected.name}, ${found[at]} on ${got.name}`;
}

function normalised(rows: readonly string[], query: Comparing): readonly string[] {
  const texts = query.arraysAsSets === true ? rows.map((row) => textOf(sortedArrays(parseSpelt(row)))) : rows;
  return query.unordered !== true && isOrdered(query.query) ? texts : texts.toSorted(compareTexts);
}

function sortedArrays(row: unknown): unknown {
  const members = Object.entries(row as object).map(([name, value]) => [
    name,
    Array.isArray(value) ? value.toSorted((one, other) => compareTexts(textOf(one), textOf(other))) : value,
  ]);
  return Object.fromEntries(members);
}

const compareTexts = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);

/** Whether two texts of JSON differ in nothing but the last digits of numbers. */
function isNear(one: string, other: string): boolean {
  const [left, right] = [tokensOf(one), tokensOf(other)];
  return left.length === right.length && left.every((token, at) => token === right[at] || areNear(token, right[at]));
}

const isNumber = (token: string | undefined): boolean => /^[-\d]/.test(token ?? "");

const areNear = (one: string, other: string | undefined): boolean =>
  isNumber(one) && isNumber(other) && Math.abs(Number(one) - Number(other)) <= APPROXIMATE * Math.abs(Number(one));

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
