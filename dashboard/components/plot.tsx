import {
  type CSSProperties,
  type KeyboardEvent,
  lazy,
  type ReactNode,
  Suspense,
  useId,
  useMemo,
  useState,
} from "react";
import { utcDate } from "../../core/utc-date.ts";
import type { Bucket } from "../usage/buckets.ts";
import { stacked } from "../usage/series.ts";
import "./plot.css";
import type { PlotSeries } from "./plot-marks.ts";
import { fullText, unzonedText, zoneName } from "./time.ts";

/*
 * Plot of one or more series over time or over numbers: the chart, a legend with totals, the values under the pointer, and all values as a
 * table. Drag to zoom, or use the keyboard: arrow keys select a step, Shift+arrow keys select several, Enter zooms in.
 */

const PlotCanvas = lazy(() => import("./plot-canvas.tsx").then((module) => ({ default: module.PlotCanvas })));

const HEIGHT_PX = 220;

export interface PlotProps {
  /** Label for screen readers, such as "Verifications of key billing by outcome". */
  readonly label: string;
  readonly xs: readonly number[];
  /**
   * Kind of the values `xs`: times, shown in the browser's time zone; starts of UTC days, shown in UTC because the counts are per UTC day;
   * or numbers.
   */
  readonly over?: "time" | "utcDays" | "numbers";
  /** End of the last step; set if each value covers a step, such as the count of an hour. */
  readonly endX?: number;
  readonly series: readonly PlotSeries[];
  readonly isStacked?: boolean;
  readonly heightPx?: number;
  /** Unit of the values, such as "verifications per hour". */
  readonly unit?: string;
  /** Formats a value as text, such as "3.5 ms". */
  readonly inWords?: (value: number) => string;
  readonly onZoom?: (fromX: number, toX: number) => void;
  /** Content beside the hints below the chart. */
  readonly foot?: ReactNode;
}

/** Returns the height of a chart with its legend and footer. */
export const plotSpacePx = (heightPx = HEIGHT_PX): number => heightPx + 122;

const numberText = (value: number): string => value.toLocaleString("en", { maximumFractionDigits: 3 });

export function Plot(props: PlotProps): ReactNode {
  const { label, xs, over = "time", unit, endX, series, isStacked = false, heightPx = HEIGHT_PX, onZoom, foot } = props;
  const inWords = props.inWords ?? numberText;
  const hintId = useId();
  const [keyed, setKeyed] = useState<number>();
  const [hovered, setHovered] = useState<number>();
  const pointed = keyed ?? hovered;
  const [anchor, setAnchor] = useState<number>();
  const [isTableOpen, setTableOpen] = useState(false);
  const drawn = useMemo(
    () => (isStacked ? stacked(series.map(({ values }) => ({ counts: values }))) : series.map(({ values }) => values)),
    [series, isStacked],
  );
  const chosen: readonly [number, number] | undefined = useMemo(
    () =>
      anchor === undefined || keyed === undefined ? undefined : [Math.min(anchor, keyed), Math.max(anchor, keyed)],
    [anchor, keyed],
  );
  const xText = (place: number): string => {
    const x = xs[place];
    if (x === undefined) return "";
    return over === "numbers" ? numberText(x) : over === "utcDays" ? utcDate(x) : unzonedText(x);
  };
  const endOf = (place: number): number => xs[place + 1] ?? endX ?? xs[place] ?? 0;

  const onKeyDown = (event: KeyboardEvent): void => {
    const at = pointed ?? xs.length;
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: xs.length - 1 }[event.key];
    if (to !== undefined) {
      const place = Math.max(0, Math.min(xs.length - 1, to));
      if (event.shiftKey && onZoom !== undefined) setAnchor(anchor ?? Math.min(at, xs.length - 1));
      else setAnchor(undefined);
      setKeyed(place);
    } else if (event.key === "Enter" && onZoom !== undefined && chosen !== undefined) {
      const [from, last] = chosen;
      setAnchor(undefined);
      onZoom(xs[from] ?? 0, endOf(last));
    } else if (event.key === "Escape" && (pointed !== undefined || anchor !== undefined)) {
      setAnchor(undefined);
      setKeyed(undefined);
    } else return;
    event.preventDefault();
  };

  return (
    <figure className="plot" aria-label={label} style={{ "--plot-height": `${heightPx}px` } as CSSProperties}>
      {/* biome-ignore lint/a11y/useSemanticElements: HTML has no element for a plot with keyboard navigation. */}
      <div
        className="plot-area"
        role="group"
        aria-roledescription="plot"
        aria-label={label}
        aria-describedby={hintId}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: the arrow keys move between the steps.
        tabIndex={0}
        onKeyDown={onKeyDown}
        onBlur={() => {
          setAnchor(undefined);
          setKeyed(undefined);
        }}
      >
        {unit !== undefined && (
          <p className="plot-unit muted" aria-hidden="true">
            {unit}
          </p>
        )}
        <Suspense fallback={<p className="muted">Drawing …</p>}>
          <PlotCanvas
            xs={xs}
            over={over}
            endX={endX}
            series={series}
            drawn={drawn}
            isStacked={isStacked}
            heightPx={heightPx}
            keyed={keyed}
            chosen={chosen}
            onPoint={setHovered}
            onChoose={(fromX, toX) => onZoom?.(fromX, toX)}
          />
        </Suspense>
      </div>
      <ul className="plot-legend">
        {series.map(({ name, label: text, mark, values, total }) => {
          const value = pointed === undefined ? total : values[pointed];
          return (
            <li key={name} data-series={name}>
              <span
                className={`plot-mark plot-mark-${mark.pattern}`}
                style={{ "--mark": `var(${mark.color})` } as CSSProperties}
                aria-hidden="true"
              />
              <span className="plot-name" title={text}>
                {text}
              </span>
              <strong className="number">{value === undefined || value === null ? "–" : inWords(value)}</strong>
            </li>
          );
        })}
      </ul>
      <figcaption className="plot-foot muted">
        <span aria-live="polite" data-pointed={pointed}>
          {pointed !== undefined ? pointedText(over, xs[pointed] ?? 0) : aboutText(over, series)}
        </span>
        {foot}
        <span id={hintId} className="unseen">
          Arrow keys select a step{onZoom === undefined ? "" : ", Shift and arrow keys select several, Enter zooms in"},
          Escape clears the selection. The table below has all values.
        </span>
      </figcaption>
      <details onToggle={({ currentTarget }) => setTableOpen(currentTarget.open)}>
        <summary className="muted">As a table</summary>
        {isTableOpen && (
          // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable element must be reachable by keyboard.
          <section className="plot-table" tabIndex={0} aria-label={`${label}, as a table`}>
            <table>
              <thead>
                <tr>
                  <th scope="col">{HEADS[over]()}</th>
                  {series.map(({ name, label: text }) => (
                    <th key={name} scope="col">
                      {text}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {xs.map((x, place) => (
                  <tr key={x}>
                    <th scope="row">{xText(place)}</th>
                    {series.map(({ name, values }) => (
                      <td key={name}>{values[place] === null ? "–" : inWords(values[place] ?? 0)}</td>
                    ))}
                  </tr>
                ))}
              </tbody>
            </table>
          </section>
        )}
      </details>
    </figure>
  );
}

/** Returns the properties of a chart that counts `what` in buckets of time. */
export const bucketProps = (what: string, bucket: Bucket): Pick<PlotProps, "over" | "unit"> =>
  bucket === "day" ? { over: "utcDays", unit: `${what} per UTC day` } : { over: "time", unit: `${what} per ${bucket}` };

/** Text in a chart's footer that names the time zone. */
const ABOUT = {
  time: () => `times are in ${zoneName()}`,
  utcDays: () => "days are UTC days",
  numbers: () => "",
} as const;
const HEADS = { time: () => `From (${zoneName()})`, utcDays: () => "UTC day", numbers: () => "At" } as const;

/** Returns a text that says what the legend shows while no step is selected, and names the time zone. */
function aboutText(over: NonNullable<PlotProps["over"]>, series: readonly PlotSeries[]): string {
  const parts = [series.some(({ total }) => total !== undefined) ? "totals" : "", ABOUT[over]()];
  const text = parts.filter((part) => part !== "").join("; ");
  return text === "" ? "" : `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

const pointedText = (over: NonNullable<PlotProps["over"]>, x: number): string =>
  over === "numbers" ? numberText(x) : over === "utcDays" ? `${utcDate(x)}, UTC day` : fullText(x);
