/*
 * How the series of a plot are told apart: by a color of the theme and by a pattern, so that neither color-blindness nor a printer mixes
 * two of them up. plot.css has the same patterns for the legend, by the same numbers.
 */

export interface Mark {
  /** A custom property of tokens.css. */
  readonly color: `--series-${number}`;
  readonly pattern: number;
  /** Of a line: lengths of strokes and gaps. */
  readonly dash: readonly number[];
}

export interface PlotSeries {
  /** Unique in the plot. */
  readonly name: string;
  /** In the legend. */
  readonly label: string;
  readonly mark: Mark;
  /** One for each x; null is a gap. */
  readonly values: readonly (number | null)[];
  /** What the legend says while nothing is pointed at. */
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

export const MARKS: readonly Mark[] = [1, 3, 5, 6, 2, 7, 4, 1].map((series, pattern) => ({
  color: `--series-${series}`,
  pattern,
  dash: DASHES[pattern] ?? [],
}));

/** The mark of the series at a place; after the last one they begin again. */
export const plotMarkAt = (place: number): Mark => MARKS[place % MARKS.length] as Mark;

const SIZE = 8;

/** Draws a tile of a pattern in a color. Pattern 0 is a full color. */
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
