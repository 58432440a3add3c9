import type { Fields } from "./fields.ts";

/**
 * Returns a header and one line per row (RFC 4180, but with line feeds), with the names and values of `--json`. `null` becomes an empty
 * field.
 */
export const formatCsv = <Row>(fields: Fields<Row>, rows: readonly Row[]): string[] => [
  fields.map(({ name }) => cell(name)).join(","),
  ...rows.map((row) => fields.map(({ value }) => cell(value(row))).join(",")),
];

function cell(value: unknown): string {
  const text = value === null || value === undefined ? "" : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
