/*
 * Selects how the rows of any query are plotted: the candidates for the x axis, for the values, and for the column that separates series.
 */

export type Rows = readonly Readonly<Record<string, unknown>>[];

export interface PlotChoice {
  readonly x: string;
  readonly y: string;
  /** Column whose text separates series; `undefined` for a single series. */
  readonly by: string | undefined;
}

export interface PlotColumns {
  readonly x: readonly string[];
  readonly y: readonly string[];
  readonly by: readonly string[];
}

/** Maximum number of series. More would be hard to distinguish. The largest are shown; the number of omitted series is reported. */
export const SERIES_MAX = 8;

const INSTANT = /^\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d+)?Z)?$/;
const DAY = /^\d{4}-\d\d-\d\d$/;
const isInstant = (value: unknown): boolean => typeof value === "string" && INSTANT.test(value);

/** Returns whether the column has values other than `null` and `is` returns true for all of them. */
const all = (rows: Rows, column: string, is: (value: unknown) => boolean): boolean =>
  rows.some((row) => row[column] !== null) && rows.every((row) => row[column] === null || is(row[column]));

export function plotColumns(columns: readonly string[], rows: Rows): PlotColumns {
  const numbers = columns.filter((name) => all(rows, name, (value) => typeof value === "number"));
  const instants = columns.filter((name) => all(rows, name, isInstant));
  const texts = columns.filter(
    (name) => !instants.includes(name) && all(rows, name, (value) => typeof value === "string"),
  );
  // Columns named `time`, as in raw events: numbers in Unix ms.
  const numericTime = numbers.filter((name) => name === "time");
  return { x: [...instants, ...numericTime, ...numbers.filter((name) => name !== "time")], y: numbers, by: texts };
}

/** Returns the initial selection; `undefined` if the rows cannot be plotted. */
export function defaultChoice(columns: readonly string[], rows: Rows): PlotChoice | undefined {
  const can = plotColumns(columns, rows);
  const [x] = can.x;
  const y = can.y.find((name) => name !== x);
  return x === undefined || y === undefined || rows.length < 2 ? undefined : { x, y, by: can.by[0] };
}

export interface PlottedSeries {
  readonly name: string;
  /** Values, one per x; `null` if there is no row. */
  readonly ys: readonly (number | null)[];
  readonly total: number;
}

export interface Plotted {
  /** Values of the x axis, ascending: plain numbers, or times in Unix ms. */
  readonly xs: readonly number[];
  /** Dates without a time of day come from the daily roll-ups, so they are UTC days. */
  readonly over: "time" | "utcDays" | "numbers";
  /** Series, largest first, at most `SERIES_MAX`. */
  readonly series: readonly PlottedSeries[];
  readonly omitted: number;
}

const numberOf = (value: unknown): number | undefined => {
  if (typeof value === "number") return value;
  const ms = typeof value === "string" ? Date.parse(value) : Number.NaN;
  return Number.isNaN(ms) ? undefined : ms;
};

/** Returns the series to plot. Rows with the same x and series are summed. */
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
  const isDays = isTime && rows.every((row) => row[x] === null || (typeof row[x] === "string" && DAY.test(row[x])));
  const over = isDays ? "utcDays" : isTime ? "time" : "numbers";
  return { xs, over, series: series.slice(0, SERIES_MAX), omitted: Math.max(0, series.length - SERIES_MAX) };
}
