import { type ReactNode, useMemo } from "react";
import { useNow } from "../../api/use-now.ts";
import { countedUntilOf, useUsageRows, useUsageState, windowWithin } from "../../api/use-usage.ts";
import { EmptyState } from "../../components/empty-state.tsx";
import { bucketProps, Plot, plotSpacePx } from "../../components/plot.tsx";
import { LIMIT_MARKS, type PlotSeries } from "../../components/plot-marks.ts";
import { fullText } from "../../components/time.ts";
import { TopTable } from "../../components/top-table.tsx";
import { Panel } from "../../components/usage-panel.tsx";
import { RangeButtons } from "../../components/usage-selects.tsx";
import {
  PRESET_NAMES,
  type Preset,
  refreshMsOf,
  type TimeWindow,
  windowOf,
  wordsOfPreset,
} from "../../usage/buckets.ts";
import { checksQuery, topIdentifiersQuery } from "../../usage/queries.ts";
import { checksOverTime, type IdentifierRow, readCheckRows, readIdentifierRows } from "../../usage/series.ts";

const OF = "analytics.getRatelimits";

/** Shows a namespace's checks over time, its identifiers with the most checks, and its identifiers with the most rejections. */
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
  // The server runs at most two queries per workspace at once, so the third query waits here.
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
      <RangeButtons names={PRESET_NAMES} wordsOf={wordsOfPreset} range={range} onChange={onRange} />
      <Panel
        {...panel}
        title="Checks"
        spacePx={plotSpacePx(160)}
        response={{ ...checks, data: overTime }}
        query={sql.checks}
        doing="Counting the checks"
      >
        {(data) => <ChecksPlot data={data} window={window} countedUntilMs={state.data?.countedUntil} />}
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
  window,
  countedUntilMs,
}: {
  data: ReturnType<typeof checksOverTime>;
  window: TimeWindow;
  countedUntilMs: number | undefined;
}): ReactNode {
  const series = useMemo(
    (): readonly PlotSeries[] => [
      {
        name: "passed",
        label: "within the limit",
        mark: LIMIT_MARKS.within,
        values: data.passed,
        total: data.passedTotal,
      },
      {
        name: "refused",
        label: "over the limit",
        mark: LIMIT_MARKS.over,
        values: data.refused,
        total: data.refusedTotal,
      },
    ],
    [data],
  );
  if (data.passedTotal + data.refusedTotal === 0) {
    return (
      <EmptyState title="No checks in this period.">
        <p className="muted">What calls and policies check in this namespace appears here after a few seconds.</p>
      </EmptyState>
    );
  }
  return (
    <Plot
      label="Checks of the namespace, passed and rejected"
      xs={data.times}
      endX={window.toMs}
      series={series}
      isStacked
      {...bucketProps("checks", window.bucket)}
      heightPx={160}
      foot={countedUntilMs !== undefined && <span>Counted until {fullText(countedUntilMs)}.</span>}
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
