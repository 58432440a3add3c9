import plot from "simple-ascii-chart";
import { instantText } from "./fields.ts";

/* Charts for a terminal. */

const WIDTH_WITHOUT_TERMINAL = 80;
const WIDTH_MIN = 20;
const HEIGHT = 8;
/** Number of columns for the axis and the padding. */
const MARGIN = 4;

export interface PlotPoint {
  readonly timeMs: number;
  readonly value: number;
}

/**
 * Returns the lines of a line chart over time; an empty list if there are no points. If there are more points than columns, each column
 * shows the maximum of its points.
 */
export function formatPlot(
  points: readonly PlotPoint[],
  { columns = WIDTH_WITHOUT_TERMINAL, unit }: { columns?: number | undefined; unit: "hour" | "day" },
): string[] {
  const [first] = points;
  if (first === undefined) return [];
  const most = Math.max(1, ...points.map(({ value }) => value));
  const width = Math.max(WIDTH_MIN, columns - String(most).length - MARGIN);
  const perColumn = Math.ceil(points.length / width);
  const shown = Array.from({ length: Math.ceil(points.length / perColumn) }, (_, index) =>
    highest(points.slice(index * perColumn, (index + 1) * perColumn)),
  );
  // Repeats a single point, because the chart library needs two points for a line.
  const line = shown.length === 1 ? [first, first] : shown;
  const drawn = plot(
    line.map(({ value }, index): [number, number] => [index, value]),
    {
      width,
      height: HEIGHT,
      yRange: [0, most],
      customYAxisTicks: [0, most],
      hideXAxisTicks: true,
      formatter: (value) => value,
    },
  );
  const title = `verifications per ${unit}${perColumn === 1 ? "" : `, maximum of each ${perColumn} ${unit}s`}`;
  const [from, to] = [instantText(first.timeMs), instantText(points.at(-1)?.timeMs ?? first.timeMs)];
  const indent = " ".repeat(String(most).length + 1);
  const gap = " ".repeat(Math.max(2, width - from.length - to.length));
  return [
    title,
    ...drawn
      .split("\n")
      .map((text) => text.trimEnd())
      .filter((text) => text !== ""),
    `${indent}${from}${gap}${to}`,
  ];
}

const highest = (points: readonly PlotPoint[]): PlotPoint =>
  points.reduce((most, point) => (point.value > most.value ? point : most));

const BAR_LENGTH = 20;
const EIGHTHS = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/** Returns a bar for a share from 0 to 1. */
export function formatBar(share: number): string {
  const eighths = Math.round(share * BAR_LENGTH * EIGHTHS.length);
  return "█".repeat(Math.floor(eighths / EIGHTHS.length)) + EIGHTHS[eighths % EIGHTHS.length];
}
