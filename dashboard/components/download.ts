/** Offers text as a download. The browser creates the file, so the text is not sent to a server. */
export function downloadText({ name, text, type }: { name: string; text: string; type: string }): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // The browser reads the URL only after the current task, so the URL is revoked with a delay.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Downloads the result of `csvOf`. The file begins with a byte order mark, by which spreadsheets recognize UTF-8. */
export const downloadCsv = (name: string, csv: string): void =>
  downloadText({ name, text: `\uFEFF${csv}`, type: "text/csv;charset=utf-8" });

/*
 * Writes result rows as CSV (RFC 4180), with CRLF and quoted texts. A spreadsheet would run a value that begins like a formula, and an
 * attacker may have written the value. So such a value gets a leading apostrophe, which makes spreadsheets treat it as text.
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
