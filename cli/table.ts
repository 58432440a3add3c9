import { type Fields, toText } from "./fields.ts";

const GAP = "  ";
/** A narrower column would be useless; the line wraps instead. */
const SHRUNK_MIN = 12;

/**
 * A heading and a line for each row, in aligned columns. If a line does not fit into `width` characters, the columns that may
 * shrink do, the widest first. Without a width (no terminal) nothing is shortened.
 */
export function formatTable<Row>(
  fields: Fields<Row>,
  rows: readonly Row[],
  width = Number.POSITIVE_INFINITY,
): string[] {
  const shown = fields.filter((field) => field.title !== undefined);
  const heading = shown.map((field) => field.title?.toUpperCase() ?? "");
  const lines = [heading, ...rows.map((row) => shown.map((field) => toText(field, row)))];
  const widths = shown.map((_, column) => Math.max(...lines.map((line) => lengthOf(line[column] ?? ""))));
  shrink(
    widths,
    shown.map((field) => field.shrinks === true),
    width,
  );
  return lines.map((line) =>
    line
      .map((cell, column) => padOrCut(cell, widths[column] ?? 0))
      .join(GAP)
      .trimEnd(),
  );
}

/** One line for each field of one thing: heading and text. */
export function formatFields<Row>(fields: Fields<Row>, row: Row): string[] {
  const shown = fields.filter((field) => field.title !== undefined);
  const width = Math.max(...shown.map((field) => field.title?.length ?? 0));
  return shown.map((field) => `${field.title?.padEnd(width)}${GAP}${toText(field, row)}`);
}

function shrink(widths: number[], mayShrink: readonly boolean[], width: number): void {
  const total = (): number => widths.reduce((sum, one) => sum + one, 0) + GAP.length * (widths.length - 1);
  for (let excess = total() - width; excess > 0; excess = total() - width) {
    const widest = Math.max(...widths.filter((_, column) => mayShrink[column]), 0);
    if (widest <= SHRUNK_MIN) return;
    widths[widths.findIndex((one, column) => mayShrink[column] && one === widest)] = widest - 1;
  }
}

/** Counts code points, so that a character outside the first plane counts as one. */
const lengthOf = (text: string): number => [...text].length;

function padOrCut(text: string, width: number): string {
  const length = lengthOf(text);
  if (length <= width) return text + " ".repeat(width - length);
  return `${[...text].slice(0, width - 1).join("")}…`;
}
