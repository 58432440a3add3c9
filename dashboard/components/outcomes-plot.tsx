import { type ReactNode, useMemo } from "react";
import { type OutcomesOverTime, outcomeInWords } from "../usage/series.ts";
import { EmptyState } from "./empty-state.tsx";
import { bucketProps, Plot, plotSpacePx } from "./plot.tsx";
import { outcomeMark, type PlotSeries } from "./plot-marks.ts";
import { fullText, unzonedText } from "./time.ts";

/** Stacked chart of verifications over time by outcome. Buckets that are not counted yet are gaps. */
export function OutcomesPlot({
  label,
  outcomes,
  countedUntilMs,
  heightPx,
  onZoom,
  empty,
}: {
  /** Label of the chart, such as "Verifications of key billing by outcome". */
  label: string;
  outcomes: OutcomesOverTime;
  /** Time until which usage is counted, Unix ms; `undefined` if unknown. */
  countedUntilMs?: number | undefined;
  heightPx?: number;
  onZoom?: (fromMs: number, toMs: number) => void;
  /** Action to show if there are no verifications. */
  empty?: ReactNode;
}): ReactNode {
  const series = useMemo(
    () =>
      outcomes.series.map(
        ({ outcome, counts, total }): PlotSeries => ({
          name: outcome,
          label: outcomeInWords(outcome),
          mark: outcomeMark(outcome),
          values: counts,
          total,
        }),
      ),
    [outcomes],
  );
  if (series.length === 0) {
    return (
      <div className="plot-empty" style={{ minHeight: plotSpacePx(heightPx) }}>
        <EmptyState title="No verifications in this period.">
          {empty ?? <p className="muted">What gates and the API verify appears here after a few seconds.</p>}
        </EmptyState>
      </div>
    );
  }
  // The chart shows the name of the time zone, unless its buckets are UTC days.
  const untilText = outcomes.window.bucket === "day" ? fullText : unzonedText;
  return (
    <Plot
      label={label}
      xs={outcomes.times}
      endX={outcomes.window.toMs}
      series={series}
      isStacked
      {...bucketProps("verifications", outcomes.window.bucket)}
      foot={
        <span data-counted-until={countedUntilMs}>
          {countedUntilMs === undefined
            ? "It is unknown up to which time events are counted."
            : `Counted until ${untilText(countedUntilMs)}; later events are not counted yet.`}
        </span>
      }
      {...(heightPx === undefined ? {} : { heightPx })}
      {...(onZoom === undefined ? {} : { onZoom })}
    />
  );
}
