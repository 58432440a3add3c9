import { type ReactNode, useMemo } from "react";
import { useNow } from "../../api/use-now.ts";
import { countedUntilOf, useUsageRows, useUsageState, windowWithin } from "../../api/use-usage.ts";
import { EmptyState } from "../../components/empty-state.tsx";
import { Plot } from "../../components/plot.tsx";
import { type PlotSeries, plotMarkAt } from "../../components/plot-marks.ts";
import { exactText } from "../../components/time.ts";
import { TopTable } from "../../components/top-table.tsx";
import { Panel } from "../../components/usage-panel.tsx";
import { RangeButtons } from "../../components/usage-selects.tsx";
import { type Preset, refreshMsOf, windowOf } from "../../usage/buckets.ts";
import { checksQuery, topIdentifiersQuery } from "../../usage/queries.ts";
import { checksOverTime, type IdentifierRow, readCheckRows, readIdentifierRows } from "../../usage/series.ts";

const OF = "analytics.getRatelimits";

/** Checks of a namespace over time, and its identifiers with the most checks and the most rejections. */
export function NamespaceUsage({
  namespaceId,
  range,
  onRange,
}: {
  namespaceId: string;
  range: Preset;
  onRange: (range: Preset) => void;
}): ReactNode {
  const state = useUsageState();
  const [nowMs, again] = useNow(refreshMsOf(windowOf(range, 0).bucket));
  const window = useMemo(() => windowWithin(range, nowMs, state.data), [range, nowMs, state.data]);
  const sql = {
    checks: checksQuery(window, namespaceId),
    most: topIdentifiersQuery(window, namespaceId, "checks"),
    refused: topIdentifiersQuery(window, namespaceId, "refused"),
  };
  const asked = { requestedAtMs: nowMs, enabled: !state.isPending };
  const checks = useUsageRows(OF, sql.checks, readCheckRows, asked);
  const most = useUsageRows(OF, sql.most, readIdentifierRows, asked);
  // The server runs two queries per workspace at once, so the third one waits.
  const isFree = !most.isFetching && most.error === null;
  const refused = useUsageRows(OF, sql.refused, readIdentifierRows, { ...asked, enabled: asked.enabled && isFree });
  const countedUntilMs = countedUntilOf(state.data);
  const overTime = useMemo(
    () => checks.data && checksOverTime(checks.data, window, countedUntilMs),
    [checks.data, window, countedUntilMs],
  );
  const panel = { again, isReportedAbove: false };
  return (
    <>
      <fieldset className="usage-ranges">
        <legend className="unseen">Time</legend>
        <RangeButtons range={range} onChange={onRange} />
      </fieldset>
      <Panel
        {...panel}
        title="Checks"
        response={{ ...checks, data: overTime }}
        query={sql.checks}
        doing="Counting the checks"
      >
        {(data) => <ChecksPlot data={data} endMs={window.toMs} countedUntilMs={state.data?.countedUntil} />}
      </Panel>
      <div className="usage-panels">
        <Panel {...panel} title="Most checks" response={most} query={sql.most} doing="Counting the identifiers">
          {(rows) => <TopIdentifiers label="Most checks" empty="No checks in this period." rows={rows} />}
        </Panel>
        {most.error === null && (
          <Panel
            {...panel}
            title="Most rejections"
            response={refused}
            query={sql.refused}
            doing="Counting the rejections"
          >
            {(rows) => <TopIdentifiers label="Most rejections" empty="No rejections in this period." rows={rows} />}
          </Panel>
        )}
      </div>
    </>
  );
}

function ChecksPlot({
  data,
  endMs,
  countedUntilMs,
}: {
  data: ReturnType<typeof checksOverTime>;
  endMs: number;
  countedUntilMs: number | undefined;
}): ReactNode {
  const series = useMemo(
    (): readonly PlotSeries[] => [
      { name: "passed", label: "passed", mark: plotMarkAt(0), values: data.passed, total: data.passedTotal },
      { name: "refused", label: "rejected", mark: plotMarkAt(1), values: data.refused, total: data.refusedTotal },
    ],
    [data],
  );
  if (data.passedTotal + data.refusedTotal === 0) return <EmptyState title="No checks in this period." />;
  return (
    <Plot
      label="Checks of the namespace, passed and rejected"
      xs={data.times}
      endX={endMs}
      series={series}
      isStacked
      heightPx={160}
      foot={countedUntilMs !== undefined && <span>Counted until {exactText(countedUntilMs)}.</span>}
    />
  );
}

function TopIdentifiers({
  label,
  empty,
  rows,
}: {
  label: string;
  empty: string;
  rows: readonly IdentifierRow[];
}): ReactNode {
  return (
    <TopTable
      label={label}
      of="Identifier"
      heads={["Checked", "Rejected"]}
      empty={empty}
      rows={rows.map(({ identifier, checks, refused }) => ({
        id: identifier,
        name: <span title={identifier}>{identifier}</span>,
        numbers: [checks, refused],
      }))}
    />
  );
}
