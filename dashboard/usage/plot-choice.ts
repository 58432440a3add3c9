/*
 * How rows of any query may be plotted: which columns can be the x axis, which can be numbers of it, and which can tell series apart.
 */

export type Rows = readonly Readonly<Record<string, unknown>>[];

export interface PlotChoice {
  readonly x: string;
  readonly y: string;
  /** Rows with the same text in it are one series; undefined for one series. */
  readonly by: string | undefined;
}

export interface PlotColumns {
  readonly x: readonly string[];
  readonly y: readonly string[];
  readonly by: readonly string[];
}

/** More cannot be told apart in a picture. The largest are shown, and the rest is left out and counted. */
export const SERIES_MAX = 8;

const INSTANT = /^\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d+)?Z)?$/;
const isInstant = (value: unknown): boolean => typeof value === "string" && INSTANT.test(value);

/** Whether every row's value is so, and at least one is not null. */
const all = (rows: Rows, column: string, is: (value: unknown) => boolean): boolean =>
  rows.some((row) => row[column] !== null) && rows.every((row) => row[column] === null || is(row[column]));

export function plotColumns(columns: readonly string[], rows: Rows): PlotColumns {
  const numbers = columns.filter((name) => all(rows, name, (value) => typeof value === "number"));
  const instants = columns.filter((name) => all(rows, name, isInstant));
  const texts = columns.filter(
    (name) => !instants.includes(name) && all(rows, name, (value) => typeof value === "string"),
  );
  // `time` of a raw table is a number: Unix ms.
  const numericTime = numbers.filter((name) => name === "time");
  return { x: [...instants, ...numericTime, ...numbers.filter((name) => name !== "time")], y: numbers, by: texts };
}

/** What a plot shows before anybody has chosen; undefined when there is nothing to plot. */
export function defaultChoice(columns: readonly string[], rows: Rows): PlotChoice | undefined {
  const can = plotColumns(columns, rows);
  const [x] = can.x;
  const y = can.y.find((name) => name !== x);
  return x === undefined || y === undefined || rows.length < 2 ? undefined : { x, y, by: can.by[0] };
}

export interface PlottedSeries {
  readonly name: string;
  /** One for each of `xs`; null where there is no row. */
  readonly ys: readonly (number | null)[];
  readonly total: number;
}

export interface Plotted {
  /** Ascending; Unix ms when `isTime`. */
  readonly xs: readonly number[];
  readonly isTime: boolean;
  /** The largest first, at most `SERIES_MAX`. */
  readonly series: readonly PlottedSeries[];
  readonly omitted: number;
}

const numberOf = (value: unknown): number | undefined => {
  if (typeof value === "number") return value;
  const ms = typeof value === "string" ? Date.parse(value) : Number.NaN;
  return Number.isNaN(ms) ? undefined : ms;
};

/** Rows with the same x and series are added up. */
export function plotted(rows: Rows, { x, y, by }: PlotChoice): Plotted {
  const xs = [...new Set(rows.map((row) => numberOf(row[x])).filter((value) => value !== undefined))].sort(
    (a, b) => a - b,
  );
  const places = new Map(xs.map((value, index) => [value, index]));
  const found = new Map<string, (number | null)[]>();
  for (const row of rows) {
    const place = places.get(numberOf(row[x]) ?? Number.NaN);
    const value = row[y];
    if (place === undefined || typeof value !== "number") continue;
    const name = by === undefined ? y : String(row[by] ?? "");
    const ys = found.get(name) ?? xs.map(() => null);
    found.set(name, ys);
    ys[place] = (ys[place] ?? 0) + value;
  }
  const series = [...found]
    .map(([name, ys]) => ({ name, ys, total: ys.reduce<number>((sum, n) => sum + (n ?? 0), 0) }))
    .toSorted((a, b) => b.total - a.total || (a.name < b.name ? -1 : 1));
  const isTime = x === "time" || rows.some((row) => isInstant(row[x]));
  return { xs, isTime, series: series.slice(0, SERIES_MAX), omitted: Math.max(0, series.length - SERIES_MAX) };
}
