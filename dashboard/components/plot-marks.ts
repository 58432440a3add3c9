import type { Code } from "../../core/verification/codes.ts";
import { OUTCOMES } from "../usage/series.ts";

/*
 * Colors and patterns of the series of a plot. Patterns keep series apart for color-blind people and in print. plot.css has the same
 * patterns, by the same numbers, for the legend.
 */

export interface Mark {
  /** Name of a CSS custom property in tokens.css. */
  readonly color: `--series-${number}`;
  readonly pattern: number;
  /** Dash pattern of a line: lengths of strokes and gaps. */
  readonly dash: readonly number[];
}

export interface PlotSeries {
  /** Name of the series, unique in the plot. */
  readonly name: string;
  /** Text in the legend. */
  readonly label: string;
  readonly mark: Mark;
  /** Values of the series, one per x; `null` is a gap. */
  readonly values: readonly (number | null)[];
  /** Value that the legend shows while the pointer is outside the plot. */
  readonly total?: number | undefined;
}

const DASHES: readonly (readonly number[])[] = [
  [],
  [6, 3],
  [2, 3],
  [10, 3, 2, 3],
  [8, 5],
  [1, 2],
  [12, 4],
  [4, 2, 1, 2],
];

const markOf = (series: number, pattern: number): Mark => ({
  color: `--series-${series}`,
  pattern,
  dash: DASHES[pattern] ?? [],
});

export const MARKS: readonly Mark[] = [1, 3, 5, 6, 8, 7, 4, 2].map(markOf);

/** Colors of outcomes. Badges have the same colors: green is valid, red is over a limit, gray is disabled, amber is expired. */
const OUTCOME_COLORS: Readonly<Record<Code, number>> = {
  VALID: 4,
  RATE_LIMITED: 2,
  USAGE_EXCEEDED: 5,
  INSUFFICIENT_PERMISSIONS: 6,
  FORBIDDEN: 8,
  DISABLED: 7,
  EXPIRED: 3,
  NOT_FOUND: 1,
};
const OUTCOME_NAMES = Object.keys(OUTCOMES);

/**
 * Returns the style of an outcome. An outcome has the same style in every chart and badge. An outcome that is unknown to this release has
 * the last style.
 */
export function outcomeMark(outcome: string): Mark {
  const known = Object.hasOwn(OUTCOME_COLORS, outcome) ? (outcome as Code) : "NOT_FOUND";
  return markOf(OUTCOME_COLORS[known], OUTCOME_NAMES.indexOf(known));
}

/** Styles for requests within a rate limit and for requests over it. */
export const LIMIT_MARKS = { within: markOf(4, 0), over: markOf(2, 1) } as const;

/** Returns the style of the series at an index; styles repeat after the last one. */
export const plotMarkAt = (place: number): Mark => MARKS[place % MARKS.length] as Mark;

const SIZE = 8;

/** Draws a tile of a pattern in a color. Pattern 0 is solid. */
export function drawPattern(pattern: number, color: string): HTMLCanvasElement {
  const tile = document.createElement("canvas");
  tile.width = SIZE;
  tile.height = SIZE;
  const context = tile.getContext("2d");
  if (context === null) return tile;
  context.fillStyle = color;
  context.strokeStyle = color;
  context.lineWidth = 2;
  if (pattern === 0) {
    context.globalAlpha = 0.75;
    context.fillRect(0, 0, SIZE, SIZE);
    return tile;
  }
  context.globalAlpha = 0.2;
  context.fillRect(0, 0, SIZE, SIZE);
  context.globalAlpha = 1;
  for (const line of LINES[pattern % LINES.length] ?? []) {
    context.beginPath();
    context.moveTo(line[0], line[1]);
    context.lineTo(line[2], line[3]);
    context.stroke();
  }
  return tile;
}

type Line = readonly [x1: number, y1: number, x2: number, y2: number];
const RISING: readonly Line[] = [
  [-2, 10, 10, -2],
  [-2, 2, 2, -2],
  [6, 10, 10, 6],
];
const FALLING: readonly Line[] = [
  [-2, -2, 10, 10],
  [6, -2, 10, 2],
  [-2, 6, 2, 10],
];
const FLAT: readonly Line[] = [[0, 4, 8, 4]];
const UPRIGHT: readonly Line[] = [[4, 0, 4, 8]];
const DOT: readonly Line[] = [[3, 4, 5, 4]];

const LINES: readonly (readonly Line[])[] = [
  [],
  RISING,
  FALLING,
  FLAT,
  UPRIGHT,
  [...RISING, ...FALLING],
  DOT,
  [...FLAT, ...UPRIGHT],
];
