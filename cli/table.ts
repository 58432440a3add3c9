import { type Fields, toText } from "./fields.ts";

const GAP = "  ";
/** Minimum width of a shortened column. If the columns still do not fit, lines wrap. */
const SHRUNK_MIN = 12;

interface Column<Row> {
  readonly title: string;
  readonly shrinks: boolean;
  readonly drops: boolean;
  readonly cell: (row: Row) => string;
}

/**
 * Returns a heading and one line per row in aligned columns. If a line exceeds `width`, the table uses brief texts, then omits droppable
 * columns, last first, then shortens shrinkable columns, widest first, only as far as necessary. Without a width (no terminal), no text is
 * shortened.
 */
export const formatTable = <Row>(fields: Fields<Row>, rows: readonly Row[], width?: number): string[] =>
  openTable(fields, width)(rows);

/**
 * Formats a table like `formatTable`, for rows that arrive in several parts. The first part has the heading and sets the column widths. In
 * later parts, text that must not be shortened can exceed its column.
 */
export function openTable<Row>(
  fields: Fields<Row>,
  width = Number.POSITIVE_INFINITY,
): (rows: readonly Row[]) => string[] {
  let laidOut: { columns: readonly Column<Row>[]; widths: readonly number[] } | undefined;
  return (rows) => {
    const isFirst = laidOut === undefined;
    laidOut ??= layOut(fields, rows, width);
    const { columns, widths } = laidOut;
    const lineOf = (cells: readonly string[]): string =>
      cells
        .map((cell, at) => padOrCut(cell, widths[at] ?? 0, columns[at]?.shrinks === true))
        .join(GAP)
        .trimEnd();
    const lines = rows.map((row) => lineOf(columns.map(({ cell }) => cell(row))));
    return isFirst ? [lineOf(columns.map(({ title }) => title)), ...lines] : lines;
  };
}

/** Returns one line per field of a resource: heading and text. */
export function formatFields<Row>(fields: Fields<Row>, row: Row): string[] {
  const shown = fields.filter((field) => field.title !== undefined);
  const width = Math.max(...shown.map((field) => field.title?.length ?? 0));
  return shown.map((field) => `${field.title?.padEnd(width)}${GAP}${toText(field, row)}`);
}

function layOut<Row>(
  fields: Fields<Row>,
  rows: readonly Row[],
  width: number,
): { columns: readonly Column<Row>[]; widths: readonly number[] } {
  const measure = (columns: readonly Column<Row>[]): number[] =>
    columns.map(({ title, cell }) =>
      rows.reduce((widest, row) => Math.max(widest, lengthOf(cell(row))), lengthOf(title)),
    );
  /** Returns whether the columns fit after shrinking as far as possible. */
  const fits = (columns: readonly Column<Row>[]): boolean =>
    totalOf(measure(columns).map((one, at) => (columns[at]?.shrinks ? Math.min(one, SHRUNK_MIN) : one))) <= width;

  let columns = columnsOf(fields, false);
  if (!fits(columns)) columns = columnsOf(fields, true);
  while (!fits(columns)) {
    const dropped = columns.findLastIndex(({ drops }) => drops);
    if (dropped === -1) break;
    columns = columns.toSpliced(dropped, 1);
  }
  const widths = measure(columns);
  shrink(
    widths,
    columns.map(({ shrinks }) => shrinks),
    width,
  );
  return { columns, widths };
}

const columnsOf = <Row>(fields: Fields<Row>, isBrief: boolean): readonly Column<Row>[] =>
  fields.flatMap((field) => {
    if (field.title === undefined) return [];
    const { title, brief, text, shrinks = false, drops = false } = field;
    const shownText = isBrief ? (brief ?? text) : text;
    const shown = shownText === undefined ? field : { ...field, text: shownText };
    return [{ title: title.toUpperCase(), shrinks, drops, cell: (row: Row) => toText(shown, row) }];
  });

function shrink(widths: number[], mayShrink: readonly boolean[], width: number): void {
  for (let excess = totalOf(widths) - width; excess > 0; excess = totalOf(widths) - width) {
    const widest = Math.max(...widths.filter((_, column) => mayShrink[column]), 0);
    if (widest <= SHRUNK_MIN) return;
    widths[widths.findIndex((one, column) => mayShrink[column] && one === widest)] = widest - 1;
  }
}

const totalOf = (widths: readonly number[]): number =>
  widths.reduce((sum, one) => sum + one, 0) + GAP.length * (widths.length - 1);

/** Returns the number of code points, so a character outside the BMP counts as one. */
const lengthOf = (text: string): number => [...text].length;

function padOrCut(text: string, width: number, mayCut: boolean): string {
  const length = lengthOf(text);
  if (length <= width) return text + " ".repeat(width - length);
  return mayCut ? `${[...text].slice(0, width - 1).join("")}…` : text;
}
