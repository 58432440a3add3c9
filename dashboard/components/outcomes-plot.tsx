import { type ReactNode, useMemo } from "react";
import { OUTCOMES, type OutcomesOverTime, outcomeInWords } from "../usage/series.ts";
import { EmptyState } from "./empty-state.tsx";
import { Plot } from "./plot.tsx";
import { type Mark, type PlotSeries, plotMarkAt } from "./plot-marks.ts";
import { exactText } from "./time.ts";

const PLACES = Object.keys(OUTCOMES);

/** An outcome has the same color and pattern in every chart. */
const markOf = (outcome: string): Mark =>
  plotMarkAt(PLACES.includes(outcome) ? PLACES.indexOf(outcome) : PLACES.length - 1);

/** Stacked chart of verifications over time by outcome. Buckets that are not counted yet are gaps. */
export function OutcomesPlot({
  label,
  outcomes,
  countedUntilMs,
  heightPx,
  onZoom,
}: {
  /** Label of the chart, such as "Verifications of key billing by outcome". */
  label: string;
  outcomes: OutcomesOverTime;
  /** Time until which usage is counted, Unix ms; `undefined` if unknown. */
  countedUntilMs?: number | undefined;
  heightPx?: number;
  onZoom?: (fromMs: number, toMs: number) => void;
}): ReactNode {
  const series = useMemo(
    () =>
      outcomes.series.map(
        ({ outcome, counts, total }): PlotSeries => ({
          name: outcome,
          label: outcomeInWords(outcome),
          mark: markOf(outcome),
          values: counts,
          total,
        }),
      ),
    [outcomes],
  );
  if (series.length === 0) return <EmptyState title="No verifications in this period." />;
  return (
    <Plot
      label={label}
      xs={outcomes.times}
      endX={outcomes.window.toMs}
      series={series}
      isStacked
      foot={
        <span data-counted-until={countedUntilMs}>
          {countedUntilMs === undefined
            ? "It is unknown up to which time events are counted."
            : `Counted until ${exactText(countedUntilMs)}; later events are not counted yet.`}
        </span>
      }
      {...(heightPx === undefined ? {} : { heightPx })}
      {...(onZoom === undefined ? {} : { onZoom })}
    />
  );
}
