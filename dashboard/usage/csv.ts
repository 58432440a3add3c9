/*
 * Writes result rows as CSV (RFC 4180), with CRLF and quoted texts. A spreadsheet runs a text that begins like a formula, and an attacker
 * may have written the text. Such a text gets a leading apostrophe, which makes spreadsheets treat it as text.
 */

const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/u;

function cell(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return `"${(FORMULA.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
}

/** Returns a header line and one line per row. Numbers and booleans are unquoted, `null` is empty, arrays are JSON. */
export const csvOf = (columns: readonly string[], rows: readonly Readonly<Record<string, unknown>>[]): string =>
  [columns.map(cell), ...rows.map((row) => columns.map((name) => cell(row[name])))]
    .map((cells) => `${cells.join(",")}\r\n`)
    .join("");
