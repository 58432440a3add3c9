import { type ReactNode, useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { isWhole, WHOLE_STEPS } from "../usage/series.ts";
import { drawPattern, type PlotSeries } from "./plot-marks.ts";

/*
 * Canvas of a plot, drawn with uPlot, which is loaded when the first plot is shown. The canvas has only the drawing; plot.tsx also puts all
 * values into the document.
 */

export interface CanvasProps {
  /** Values of the x axis, ascending: Unix ms or numbers. */
  readonly xs: readonly number[];
  /** As of `PlotProps`. */
  readonly over: "time" | "utcDays" | "numbers";
  /** End of the last step; set if each value covers a step. */
  readonly endX: number | undefined;
  readonly series: readonly PlotSeries[];
  /** Heights to draw for each series: its values or, in a stack, its upper edge. */
  readonly drawn: readonly (readonly (number | null)[])[];
  readonly isStacked: boolean;
  readonly heightPx: number;
  /** Index of the step that the keyboard selects; `undefined` if none. */
  readonly keyed: number | undefined;
  /** First and last selected index, both inclusive. */
  readonly chosen: readonly [number, number] | undefined;
  readonly onPoint: (place: number | undefined) => void;
  readonly onChoose: (fromX: number, toX: number) => void;
}

const DRAG_PX_MIN = 6;

export function PlotCanvas(props: CanvasProps): ReactNode {
  const { xs, over, endX, series, drawn, isStacked, heightPx, keyed, chosen } = props;
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const wasChosen = useRef(false);
  const latest = useRef(props);
  latest.current = props;

  // Creates a new plot after each change of the content. This takes about a millisecond, and the new plot keeps no state of the old one.
  useEffect(() => {
    const element = host.current;
    if (element === null) return;
    const data: uPlot.AlignedData = [withEnd(xs, endX), ...drawn.map((ys) => withEnd(ys, endX && (ys.at(-1) ?? null)))];
    const make = (): void => {
      plot.current?.destroy();
      const width = Math.max(120, element.clientWidth);
      plot.current = new uPlot(
        optionsOf({ element, width, heightPx, over, isStacked, series, endX, isWhole: isWhole(drawn), latest }),
        data,
        element,
      );
    };
    make();
    const resized = new ResizeObserver(() => {
      const width = element.clientWidth;
      if (width > 0 && width !== plot.current?.width) plot.current?.setSize({ width, height: heightPx });
    });
    resized.observe(element);
    const stopWatching = watchTheme(make);
    return () => {
      resized.disconnect();
      stopWatching();
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [xs, over, endX, series, drawn, isStacked, heightPx]);

  useEffect(() => {
    const current = plot.current;
    if (current === undefined) return;
    const left = (place: number): number => current.valToPos(withEnd(xs, endX)[place] ?? 0, "x");
    if (keyed !== undefined) {
      const middle = endX === undefined ? left(keyed) : (left(keyed) + left(keyed + 1)) / 2;
      current.setCursor({ left: middle, top: 1 }, false);
    }
    if (chosen !== undefined) {
      const [from, to] = chosen;
      const begin = left(from);
      const end = endX === undefined ? left(to) : left(to + 1);
      current.setSelect({ left: begin, width: end - begin, top: 0, height: current.over.clientHeight }, false);
    } else if (wasChosen.current) {
      current.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    }
    // Records the selection, so that this effect does not clear it while the pointer is dragging.
    wasChosen.current = chosen !== undefined;
  }, [keyed, chosen, xs, endX]);

  return <div ref={host} className="plot-canvas" aria-hidden="true" />;
}

const withEnd = <T,>(values: readonly T[], end: T | undefined): T[] =>
  end === undefined ? [...values] : [...values, end];

/**
 * Time formats by the distance between two ticks. Each format has a label for every tick. It has a second line for the first tick, and for
 * ticks at which a new year or day begins.
 */
const TIMES: uPlot.Axis.Values = [
  [86_400_000, "{MMM} {D}", "\n{YYYY}", null, null, null, null, null, 1],
  [60_000, "{HH}:{mm}", "\n{MMM} {D}", null, "\n{MMM} {D}", null, null, null, 1],
  [1000, "{HH}:{mm}:{ss}", "\n{MMM} {D}", null, "\n{MMM} {D}", null, null, null, 1],
];

interface Making {
  readonly element: HTMLElement;
  readonly width: number;
  readonly heightPx: number;
  /** As of `PlotProps`. */
  readonly over: "time" | "utcDays" | "numbers";
  readonly isStacked: boolean;
  readonly series: readonly PlotSeries[];
  readonly endX: number | undefined;
  readonly isWhole: boolean;
  readonly latest: { readonly current: CanvasProps };
}

function optionsOf(making: Making): uPlot.Options {
  const { element, width, heightPx, over, isStacked, series, endX, latest } = making;
  const color = colorsOf(element);
  const [text, line] = [color("--muted"), color("--line")];
  const axis = { stroke: text, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
  const fills = series.map(({ mark }) => drawPattern(mark.pattern, color(mark.color)));
  const paths = endX === undefined ? {} : { paths: uPlot.paths.stepped?.({ align: 1 }) as uPlot.Series.PathBuilder };
  const fillOf = (place: number) => (self: uPlot) =>
    self.ctx.createPattern(fills[place] as HTMLCanvasElement, "repeat") ?? text;
  const options: uPlot.Options = {
    width,
    height: heightPx,
    ms: 1,
    tzDate: (ms) => (over === "utcDays" ? uPlot.tzDate(new Date(ms), "Etc/UTC") : new Date(ms)),
    legend: { show: false },
    cursor: {
      y: false,
      points: { show: false },
      drag: { x: true, y: false, setScale: false, dist: DRAG_PX_MIN },
      dataIdx: (self, _, nearest) => {
        if (endX === undefined) return nearest;
        const x = self.posToVal(self.cursor.left ?? 0, "x");
        return Math.max(0, latest.current.xs.findLastIndex((start) => start <= x) ?? 0);
      },
    },
    scales: {
      x: { time: over !== "numbers" },
      y: { range: (_, min, max) => [Math.min(0, min ?? 0), Math.max(making.isWhole ? 1 : 1e-9, (max ?? 1) * 1.05)] },
    },
    axes: [
      over === "numbers" ? axis : { ...axis, values: TIMES },
      {
        ...axis,
        size: 56,
        values: (_, values) => values.map((value) => shortNumber(value)),
        ...(making.isWhole ? { incrs: WHOLE_STEPS } : {}),
      },
    ],
    series: [
      {},
      ...series.map(({ name, mark }, place) => ({
        label: name,
        stroke: color(mark.color),
        width: isStacked ? 1 : 2,
        dash: isStacked ? [] : [...mark.dash],
        spanGaps: false,
        points: { show: false },
        ...(isStacked && place === 0 ? { fill: fillOf(0) } : {}),
        ...paths,
      })),
    ],
    hooks: {
      setCursor: [
        (self) => {
          const place =
            self.cursor.left === undefined || self.cursor.left < 0 ? undefined : (self.cursor.idx ?? undefined);
          latest.current.onPoint(place === undefined ? undefined : Math.min(place, latest.current.xs.length - 1));
        },
      ],
      setSelect: [
        (self) => {
          const { left, width: selected } = self.select;
          if (selected < DRAG_PX_MIN) return;
          latest.current.onChoose(self.posToVal(left, "x"), self.posToVal(left + selected, "x"));
          self.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
        },
      ],
    },
  };
  // Fills the area between the upper edges of two stacked series.
  if (isStacked) {
    options.bands = series.slice(1).map((_, index) => ({ series: [index + 2, index + 1], fill: fillOf(index + 1) }));
  }
  return options;
}

/** Formats a number for an axis: `1.2k`, `3M`. */
export function shortNumber(value: number): string {
  const size = Math.abs(value);
  for (const [unit, name] of [
    [1e9, "G"],
    [1e6, "M"],
    [1e3, "k"],
  ] as const) {
    if (size >= unit) return `${Number((value / unit).toPrecision(3))}${name}`;
  }
  return String(Number(value.toPrecision(3)));
}

/** Returns a function that reads theme colors in the format that a canvas accepts. */
function colorsOf(element: HTMLElement): (property: string) => string {
  const probe = document.createElement("span");
  element.append(probe);
  const found = new Map<string, string>();
  return (property) => {
    const known = found.get(property);
    if (known !== undefined) return known;
    if (!probe.isConnected) element.append(probe);
    probe.style.color = `var(${property})`;
    const value = getComputedStyle(probe).color;
    probe.remove();
    found.set(property, value);
    return value;
  };
}

/**
 * Calls `changed` when the system or the person changes the theme, and when the page is printed, because print always uses the light theme.
 */
function watchTheme(changed: () => void): () => void {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const paper = matchMedia("print");
  for (const media of [system, paper]) media.addEventListener("change", changed);
  const observer = new MutationObserver(changed);
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  return () => {
    for (const media of [system, paper]) media.removeEventListener("change", changed);
    observer.disconnect();
  };
}
