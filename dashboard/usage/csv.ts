/*
 * Rows of an answer as CSV (RFC 4180): CRLF, and quotes around each text. A spreadsheet runs a text that begins like a formula, and the texts of an
 * answer may be an attacker's: such a text gets an apostrophe before it, which spreadsheets take as "this is text".
 */

const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/u;

function cell(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return `"${(FORMULA.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
}

/** Returns a header and a line for each row. Numbers and booleans stand bare, null is empty, arrays are JSON. */
export const csvOf = (columns: readonly string[], rows: readonly Readonly<Record<string, unknown>>[]): string =>
  [columns.map(cell), ...rows.map((row) => columns.map((name) => cell(row[name])))]
    .map((cells) => `${cells.join(",")}\r\n`)
    .join("");
