import { createLazyRoute, getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { Printer } from "lucide-react";
import { type ReactNode, useMemo, useState } from "react";
import type { ApiError } from "../../api/api-error.ts";
import { useRead } from "../../api/queries.ts";
import { useNow } from "../../api/use-now.ts";
import { Ago } from "../../components/ago.tsx";
import { Button } from "../../components/button.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { OutcomesPlot } from "../../components/outcomes-plot.tsx";
import { Page } from "../../components/page.tsx";
import { bucketProps, Plot, plotSpacePx } from "../../components/plot.tsx";
import { plotMarkAt } from "../../components/plot-marks.ts";
import { durationText, windowText } from "../../components/time.ts";
import { TopTable } from "../../components/top-table.tsx";
import { UsageOff } from "../../components/usage-off.tsx";
import { Panel } from "../../components/usage-panel.tsx";
import { refreshMsOf, windowOf, wordsOfPreset } from "../../usage/buckets.ts";
import type { UsageFilter } from "../../usage/queries.ts";
import { rangeOf, type UsageSearch, withRange } from "../../usage/search.ts";
import { type OutcomesOverTime, totalsText } from "../../usage/series.ts";
import { Filters } from "./filters.tsx";
import { PrintHead } from "./print-head.tsx";
import { latencySeries, usePictures } from "./use-pictures.ts";
import "./usage.css";

export const Route = createLazyRoute("/usage")({ component: UsagePage });
const here = getRouteApi("/usage");

function UsagePage(): ReactNode {
  const search = here.useSearch();
  const navigate = useNavigate({ from: "/usage" });
  const [isPaused, setPaused] = useState(false);
  // A custom range is an object. `useMemo` returns the same object while the URL does not change.
  const range = useMemo(() => rangeOf(search), [search]);
  const everyMs = refreshMsOf(windowOf(range, 0).bucket);
  const [nowMs, askNow] = useNow(everyMs, isPaused);
  const api = useRead(
    "admin.resolveNames",
    { kind: "api", ids: [search.api ?? ""] },
    { enabled: search.api !== undefined },
  );
  const filter = useFilter(search, api.data?.[0]?.keySpaceId);
  const isReady = search.api === undefined || !api.isPending;
  const pictures = usePictures(range, filter, { nowMs, isReady });
  const { state, window, sql, rows, outcomes, keys, owners, limits, hasLatency, latency } = pictures;
  const change = (next: UsageSearch): void => void navigate({ search: next });

  const all = [rows, keys, owners, limits, ...(hasLatency ? [latency] : [])];
  const again = (): void => {
    askNow();
    void state.refetch();
  };
  // `rows` is listed twice, because two charts use this query.
  const common = commonError([rows, ...all].map(({ error }) => error));
  const panel = { again, isReportedAbove: common !== undefined };

  return (
    <Page
      title="Usage"
      about="Verifications, credits and rejections of the workspace."
      actions={
        <>
          <Link to="/requests" search={requestsOf(search)}>
            Requests
          </Link>
          <Link to="/usage/sql">Query with SQL</Link>
          <Button onClick={() => globalThis.print()}>
            <Printer size={16} aria-hidden />
            Print
          </Button>
        </>
      }
    >
      <PrintHead search={search} window={window} atMs={nowMs} />
      <Filters search={search} window={window} onChange={change} />
      <div className="usage-age muted">
        <span>{windowText(window)}</span>
        <span>
          asked <Ago atMs={nowMs} />
        </span>
        <Button kind="quiet" onClick={again} isBusy={all.some(({ isFetching }) => isFetching)}>
          Refresh
        </Button>
        <Button kind="quiet" onClick={() => setPaused(!isPaused)} aria-pressed={isPaused}>
          {isPaused ? "Refresh is paused" : `Refreshes every ${durationText(everyMs)}`}
        </Button>
      </div>
      {state.data?.enabled === false && <UsageOff />}
      {common !== undefined && <ErrorNote error={common} doing="Reading usage" again={again} />}
      {state.data?.enabled !== false && (
        <div className="usage-panels">
          <Panel
            {...panel}
            isWide
            spacePx={plotSpacePx()}
            title="Outcomes"
            about={outcomes && totalsText(outcomes)}
            response={{ ...rows, data: outcomes }}
            query={sql.outcomes}
            doing="Counting outcomes"
          >
            {(data) => (
              <OutcomesPlot
                label="Verifications by outcome"
                outcomes={data}
                countedUntilMs={state.data?.countedUntil}
                onZoom={(fromMs, toMs) => change(withRange(search, { fromMs, toMs }))}
                empty={
                  range !== LONGEST && (
                    <Button onClick={() => change(withRange(search, LONGEST))}>Show {wordsOfPreset(LONGEST)}</Button>
                  )
                }
              />
            )}
          </Panel>
          <Panel
            {...panel}
            spacePx={plotSpacePx(160)}
            title="Credits spent"
            about={outcomes && `${outcomes.creditsTotal.toLocaleString("en")} in all`}
            response={{ ...rows, data: outcomes }}
            query={sql.outcomes}
            doing="Counting credits"
          >
            {(data) => <Credits data={data} onZoom={(fromMs, toMs) => change(withRange(search, { fromMs, toMs }))} />}
          </Panel>
          <Panel
            {...panel}
            spacePx={plotSpacePx(160)}
            title="Latency of verification"
            about="Of all verifications in a step, half take less than the median."
            response={hasLatency ? latency : NO_LATENCY}
            doing="Reading latencies"
          >
            {(data) =>
              hasLatency ? (
                <Latency data={data} window={window} />
              ) : (
                <p className="muted">Latencies are available for periods of up to 24 hours.</p>
              )
            }
          </Panel>
          <Panel {...panel} title="Top keys" response={keys} query={sql.keys} doing="Counting keys">
            {(data) => <TopKeys rows={data} search={search} />}
          </Panel>
          <Panel {...panel} title="Top owners" response={owners} query={sql.owners} doing="Counting owners">
            {(data) => (
              <TopTable
                label="Top owners"
                of="Owner"
                heads={COUNTED}
                empty="No keys with an owner were used in this period."
                rows={data.map(({ id, ...counts }) => ({
                  id,
                  name: (
                    <Link to="/usage" search={{ ...search, owner: id }} title={id}>
                      {id}
                    </Link>
                  ),
                  numbers: numbersOf(counts),
                }))}
              />
            )}
          </Panel>
          <Panel
            {...panel}
            title="Limits with the most rejections"
            about={hasFilter(search) ? "All limits of the workspace; the filters for keys do not apply." : undefined}
            response={limits}
            query={sql.limits}
            doing="Counting limits"
          >
            {(data) => <TopLimits rows={data} />}
          </Panel>
        </div>
      )}
    </Page>
  );
}

/** Returns the same filters for the Requests page, with a range of at most 7 days, the longest that the page supports. */
const requestsOf = ({ range = "24h", api, key, owner, outcome }: UsageSearch) => ({
  ...(range === "1h" ? {} : { range: range === "7d" || range === "30d" ? ("7d" as const) : ("24h" as const) }),
  ...(api === undefined ? {} : { api }),
  ...(key === undefined ? {} : { key }),
  ...(owner === undefined ? {} : { owner }),
  ...(outcome === undefined ? {} : { outcome }),
});

const LONGEST = "30d";
const COUNTED = ["Verified", "Rejected", "Credits"] as const;
const numbersOf = ({
  verifications,
  refused,
  credits,
}: {
  verifications: number;
  refused: number;
  credits: number;
}) => [verifications, refused, credits];
const NO_LATENCY = { data: [], error: null, isFetching: false };
/** Id to query instead of an API that does not exist. No key space has this id. */
const NO_KEY_SPACE = "none";

function useFilter({ api, key, owner, outcome }: UsageSearch, keySpaceId: string | undefined): UsageFilter {
  return useMemo(
    () => ({
      keySpaceId: api === undefined ? undefined : (keySpaceId ?? NO_KEY_SPACE),
      keyId: key,
      externalId: owner,
      outcome,
    }),
    [api, key, owner, outcome, keySpaceId],
  );
}

const hasFilter = ({ api, key, owner, outcome }: UsageSearch): boolean =>
  [api, key, owner, outcome].some((each) => each !== undefined);

/** Returns an error that at least two charts have in common, so that the page shows it only once. */
function commonError(errors: readonly (ApiError | null)[]): ApiError | undefined {
  const found = errors.filter((error) => error !== null);
  const [first] = found;
  return first !== undefined && found.length > 1 && found.every(({ kind }) => kind === first.kind) ? first : undefined;
}

function Credits({
  data,
  onZoom,
}: {
  data: OutcomesOverTime;
  onZoom: (fromMs: number, toMs: number) => void;
}): ReactNode {
  const { credits, creditsTotal } = data;
  const series = useMemo(
    () => [{ name: "credits", label: "credits", mark: plotMarkAt(0), values: credits, total: creditsTotal }],
    [credits, creditsTotal],
  );
  return (
    <Plot
      label="Credits spent"
      xs={data.times}
      endX={data.window.toMs}
      series={series}
      isStacked
      {...bucketProps("credits", data.window.bucket)}
      heightPx={160}
      onZoom={onZoom}
    />
  );
}

const QUANTILE_WORDS = { p50: "median", p95: "95th percentile", p99: "99th percentile" } as const;

function Latency({
  data,
  window,
}: {
  data: Parameters<typeof latencySeries>[0];
  window: Parameters<typeof latencySeries>[1];
}): ReactNode {
  const { times, series } = useMemo(() => {
    const read = latencySeries(data, window);
    return {
      times: read.times,
      series: read.series.map(({ name, values }, place) => ({
        name,
        label: QUANTILE_WORDS[name],
        mark: plotMarkAt(place),
        values,
      })),
    };
  }, [data, window]);
  if (data.length === 0) return <p className="muted">No verifications in this period.</p>;
  return (
    <Plot
      label="Latency of verification"
      xs={times}
      endX={window.toMs}
      series={series}
      {...bucketProps("ms", window.bucket)}
      unit="ms"
      heightPx={160}
      inWords={(ms) => `${ms.toLocaleString("en", { maximumFractionDigits: 2 })} ms`}
    />
  );
}

function TopKeys({
  rows,
  search,
}: {
  rows: readonly { id: string; verifications: number; refused: number; credits: number }[];
  search: UsageSearch;
}): ReactNode {
  const ids = rows.map(({ id }) => id);
  const names = useRead("admin.resolveNames", { kind: "key", ids }, { enabled: ids.length > 0 });
  const byId = new Map(names.data?.map((named) => [named.id, named]));
  return (
    <TopTable
      label="Top keys"
      of="Key"
      heads={COUNTED}
      empty="No keys were used in this period."
      rows={rows.map(({ id, ...counts }) => {
        const named = byId.get(id);
        return {
          id,
          name: (
            <>
              <Link to="/usage" search={{ ...search, key: id }} title={id}>
                {named?.name ?? named?.start ?? id}
              </Link>
              {named?.deleted === true && <span className="muted"> deleted</span>}
            </>
          ),
          numbers: numbersOf(counts),
        };
      })}
    />
  );
}

function TopLimits({
  rows,
}: {
  rows: readonly { namespaceId: string; identifier: string; checks: number; refused: number }[];
}): ReactNode {
  const ids = [...new Set(rows.map(({ namespaceId }) => namespaceId))];
  const names = useRead("admin.resolveNames", { kind: "namespace", ids }, { enabled: ids.length > 0 });
  const byId = new Map(names.data?.map((named) => [named.id, named]));
  return (
    <TopTable
      label="Limits with the most rejections"
      of="Namespace and identifier"
      heads={["Rejected", "Checked"]}
      empty="No limit rejected a request in this period."
      rows={rows.map(({ namespaceId, identifier, checks, refused }) => ({
        id: `${namespaceId} ${identifier}`,
        name: (
          <span title={`${namespaceId} ${identifier}`}>
            <Link to="/ratelimits/$namespaceId" params={{ namespaceId }}>
              {byId.get(namespaceId)?.name ?? namespaceId}
            </Link>{" "}
            <span className="muted">›</span> {identifier}
          </span>
        ),
        numbers: [refused, checks],
      }))}
    />
  );
}
