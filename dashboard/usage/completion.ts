import type { Data } from "../../core/api/procedures.ts";
import { type QueryOf, queryOf } from "./sql-fragment.ts";

/*
 * Completions of the query editor at a position. The server lists the tables, columns and functions that a query may use.
 */

export type QuerySchema = Data<"admin.getAnalyticsSchema">;

export interface Offer {
  readonly label: string;
  readonly type: "keyword" | "table" | "column" | "function";
  /** Text next to the label: the type of a column, or the signature of a function. */
  readonly detail?: string;
  readonly info?: string;
}

export interface Offers {
  /** Start offset of the word that a completion replaces. */
  readonly from: number;
  readonly options: readonly Offer[];
}

/** Keywords of the SQL dialect. A test runs each of them in a query on both databases. */
export const KEYWORDS: readonly string[] =
  "SELECT DISTINCT FROM WHERE GROUP BY HAVING ORDER ASC DESC LIMIT OFFSET WITH AS UNION ALL EXCEPT JOIN LEFT INNER ON AND OR NOT IN BETWEEN LIKE ILIKE IS NULL CASE WHEN THEN ELSE END INTERVAL OVER PARTITION FILL STEP TO".split(
    " ",
  );

const WORD = /[A-Za-z_][A-Za-z0-9_]*$/;

/**
 * Returns the completions; `undefined` if there is nothing to complete, such as in a string, in a comment, or without a word. `isAsked`:
 * the person requested completions explicitly.
 */
export function offersAt(text: string, at: number, schema: QuerySchema, isAsked: boolean): Offers | undefined {
  const before = text.slice(0, at);
  if (isInTextOrComment(before)) return undefined;
  const word = WORD.exec(before)?.[0] ?? "";
  if (word === "" && !isAsked) return undefined;
  const from = at - word.length;
  const head = before.slice(0, from);
  if (/\b(?:from|join)\s+[`"]?$/i.test(head)) return { from, options: schema.tables.map(toTable) };
  return { from, options: [...columnsOf(text, schema, queryOf(text)), ...schema.functions.map(toFunction), ...WORDS] };
}

const WORDS: readonly Offer[] = KEYWORDS.map((label) => ({ label, type: "keyword" }));
const toTable = ({ name, meaning }: QuerySchema["tables"][number]): Offer => ({
  label: name,
  type: "table",
  info: meaning,
});
const toFunction = ({ name, call, meaning }: QuerySchema["functions"][number]): Offer => ({
  label: name,
  type: "function",
  detail: call,
  info: meaning,
});

/** Returns the columns of the tables in the text or, if it contains none, of all tables of this kind. */
function columnsOf(text: string, { tables }: QuerySchema, of: QueryOf): Offer[] {
  const named = tables.filter(({ name }) => new RegExp(`\\b${name}\\b`, "i").test(text));
  const read = named.length > 0 ? named : tables.filter((table) => table.of === of);
  const byName = new Map<string, Offer>();
  for (const { columns } of read) {
    for (const { name, type, meaning } of columns) {
      if (!byName.has(name)) byName.set(name, { label: name, type: "column", detail: type, info: meaning });
    }
  }
  return [...byName.values()];
}

/** Whether a string, a quoted name or a comment is open at the end of the text. */
function isInTextOrComment(before: string): boolean {
  const rest = before.replace(/'(?:\\[\s\S]|''|[^'\\])*'|"[^"]*"|`[^`]*`|--[^\n]*\n|#[^\n]*\n|\/\*[\s\S]*?\*\//g, " ");
  return /['"`#]|--|\/\*/.test(rest);
}
