import { type ReactNode, useMemo, useState } from "react";
import { Plot } from "../../../components/plot.tsx";
import { plotMarkAt } from "../../../components/plot-marks.ts";
import { Select } from "../../../components/select.tsx";
import { defaultChoice, type PlotChoice, plotColumns, plotted, type Rows } from "../../../usage/plot-choice.ts";

const NONE = "";

/** Plots the rows of a result; the person selects the x column, the value column, and the column whose values become separate lines. */
export function ResultPlot({ columns, rows }: { columns: readonly string[]; rows: Rows }): ReactNode {
  const can = useMemo(() => plotColumns(columns, rows), [columns, rows]);
  const [chosen, setChosen] = useState<PlotChoice>();
  const choice = useMemo(
    () =>
      chosen !== undefined && can.x.includes(chosen.x) && can.y.includes(chosen.y)
        ? chosen
        : defaultChoice(columns, rows),
    [chosen, can, columns, rows],
  );
  const shown = useMemo(() => choice && plotted(rows, choice), [rows, choice]);
  const series = useMemo(
    () =>
      shown?.series.map(({ name, ys, total }, place) => ({
        name,
        label: name === "" ? "(empty)" : name,
        mark: plotMarkAt(place),
        values: ys,
        total,
      })) ?? [],
    [shown],
  );
  if (choice === undefined || shown === undefined) {
    return (
      <p className="muted">
        The result cannot be plotted: a plot needs at least two rows, a time or number for the x axis, and a number for
        the y axis.
      </p>
    );
  }
  const options = (names: readonly string[]) => names.map((name) => ({ value: name, label: name }));
  return (
    <div className="sql-plot">
      <div className="usage-bar">
        <Select label="Over" value={choice.x} options={options(can.x)} onChange={(x) => setChosen({ ...choice, x })} />
        <Select label="Show" value={choice.y} options={options(can.y)} onChange={(y) => setChosen({ ...choice, y })} />
        <Select
          label="One line per"
          value={choice.by ?? NONE}
          options={[{ value: NONE, label: "(one line)" }, ...options(can.by)]}
          onChange={(by) => setChosen({ ...choice, by: by === NONE ? undefined : by })}
        />
      </div>
      <Plot
        label="Result"
        xs={shown.xs}
        over={shown.over}
        unit={choice.y}
        series={series}
        heightPx={280}
        foot={shown.omitted > 0 && <span>{shown.omitted} smaller lines are omitted.</span>}
      />
    </div>
  );
}
