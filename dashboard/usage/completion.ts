import type { Data } from "../../core/api/procedures.ts";
import { type QueryOf, queryOf } from "./sql-fragment.ts";

/*
 * What an editor of queries offers at a place of the text. Tables, columns and functions are what the server says that a query may name.
 */

export type QuerySchema = Data<"admin.getAnalyticsSchema">;

export interface Offer {
  readonly label: string;
  readonly type: "keyword" | "table" | "column" | "function";
  /** Beside the label: a type, or how a function is called. */
  readonly detail?: string;
  readonly info?: string;
}

export interface Offers {
  /** Where the word begins that an offer replaces. */
  readonly from: number;
  readonly options: readonly Offer[];
}

/** Words of the clauses that the dialect has. A test has each of them in a query that both stores answer. */
export const KEYWORDS: readonly string[] =
  "SELECT DISTINCT FROM WHERE GROUP BY HAVING ORDER ASC DESC LIMIT OFFSET WITH AS UNION ALL EXCEPT JOIN LEFT INNER ON AND OR NOT IN BETWEEN LIKE ILIKE IS NULL CASE WHEN THEN ELSE END INTERVAL OVER PARTITION FILL STEP TO".split(
    " ",
  );

const WORD = /[A-Za-z_][A-Za-z0-9_]*$/;

/** undefined where there is nothing to complete: in a text, a comment, or without a word. `isAsked`: the person asked for it. */
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

/** Of the tables that the text names; of all tables of its kind while it names none. */
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

/** Whether a text, a quoted name or a comment is open at the end. */
function isInTextOrComment(before: string): boolean {
  const rest = before.replace(/'(?:\\[\s\S]|''|[^'\\])*'|"[^"]*"|`[^`]*`|--[^\n]*\n|#[^\n]*\n|\/\*[\s\S]*?\*\//g, " ");
  return /['"`#]|--|\/\*/.test(rest);
}
