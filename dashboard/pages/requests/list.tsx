import { createLazyRoute, getRouteApi, useNavigate } from "@tanstack/react-router";
import { Pause, Play } from "lucide-react";
import { type ReactNode, type RefObject, useMemo, useRef, useState } from "react";
import type { Input } from "../../../core/api/procedures.ts";
import { useRead } from "../../api/queries.ts";
import { useNames } from "../../api/use-names.ts";
import { FOLLOW_EVERY_MS, type Log, useRequests } from "../../api/use-requests.ts";
import { useUsageState, withinRetention } from "../../api/use-usage.ts";
import { Button } from "../../components/button.tsx";
import { CodeBlock } from "../../components/code-block.tsx";
import { curlLine } from "../../components/curl-line.ts";
import { EmptyState } from "../../components/empty-state.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { Notice } from "../../components/notice.tsx";
import { Page } from "../../components/page.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { Tabs } from "../../components/tabs.tsx";
import { durationText } from "../../components/time.ts";
import { UsageOff } from "../../components/usage-off.tsx";
import { withTexts } from "../../search-params.ts";
import type { LogOf, RowOf } from "../../usage/requests.ts";
import { ratelimitColumns, verificationColumns } from "./columns.tsx";
import { Filters } from "./filters.tsx";
import { DEFAULT_RANGE, filterOf, RANGES, type RequestsSearch } from "./search.ts";
import "./requests.css";

export const Route = createLazyRoute("/requests")({ component: RequestsPage });
const here = getRouteApi("/requests");

type Change = Partial<Record<keyof RequestsSearch, string>>;

const LONGEST = "7d";

/** Removes the filters of both tabs. */
const NO_FILTERS: Change = { outcome: "", api: "", key: "", owner: "", result: "", namespace: "", identifier: "" };

function RequestsPage(): ReactNode {
  const search = here.useSearch();
  const navigate = useNavigate({ from: "/requests" });
  const [isFollowing, setFollowing] = useState(false);
  const set = (change: Change): void => void navigate({ search: withTexts(change), replace: true });
  const shared = { search, set, isFollowing, setFollowing };
  return (
    <Page
      title="Requests"
      about="Single verifications and checks of rate limits, newest first. A request appears a few seconds after it happened."
    >
      <Tabs
        label="Requests"
        value={search.of ?? "verifications"}
        onChange={(of) => set({ of: of === "verifications" ? "" : of })}
        tabs={[
          { value: "verifications", label: "Verifications", content: <Verifications {...shared} /> },
          { value: "ratelimits", label: "Rate limits", content: <Ratelimits {...shared} /> },
        ]}
      />
    </Page>
  );
}

interface TabProps {
  readonly search: RequestsSearch;
  readonly set: (change: Change) => void;
  readonly isFollowing: boolean;
  readonly setFollowing: (isFollowing: boolean) => void;
}

function Verifications(props: TabProps): ReactNode {
  const log = useLog("verifications", props);
  const { rows } = log;
  const keyIds = useMemo(() => rows.map(({ keyId }) => keyId), [rows]);
  const keySpaceIds = useMemo(() => rows.map(({ keySpaceId }) => keySpaceId), [rows]);
  const keys = useNames("key", keyIds);
  const apis = useNames("api", keySpaceIds);
  const columns = useMemo(() => verificationColumns(rows, keys, apis), [rows, keys, apis]);
  return (
    <LogTable {...props} log={log} columns={columns} curl={{ procedure: "keys.verifyKey", body: { key: "<a key>" } }} />
  );
}

function Ratelimits(props: TabProps): ReactNode {
  const log = useLog("ratelimits", props);
  const { rows } = log;
  const namespaceIds = useMemo(() => rows.map(({ namespaceId }) => namespaceId), [rows]);
  const namespaces = useNames("namespace", namespaceIds);
  const columns = useMemo(() => ratelimitColumns(namespaces), [namespaces]);
  const body = { namespace: "emails", identifier: "user_1", limit: 10, duration: 60_000 };
  return <LogTable {...props} log={log} columns={columns} curl={{ procedure: "ratelimit.limit", body }} />;
}

interface TabLog<Row> extends Log<Row> {
  readonly list: RefObject<HTMLDivElement | null>;
  /** Whether usage queries are off for the workspace. */
  readonly isOff: boolean;
  /** Whether the retention is shorter than the selected range. */
  readonly isCut: boolean;
  readonly queriesPerHour: number | undefined;
  /** Permission to read the log. */
  readonly needed: string;
}

/** Reads the log of a tab. */
function useLog<Of extends LogOf>(of: Of, { search, isFollowing }: TabProps): TabLog<RowOf[Of]> {
  const list = useRef<HTMLDivElement>(null);
  const usage = useUsageState();
  const state = usage.data;
  const { api, range = DEFAULT_RANGE } = search;
  const apiNamed = useRead("admin.resolveNames", { kind: "api", ids: [api ?? ""] }, { enabled: api !== undefined });
  const isOff = state?.enabled === false;
  const rangeMs = withinRetention(RANGES[range].ms, of, state);
  const log = useRequests({
    of,
    // For an API that does not exist, the API's id is used as the key space. No key space has this id, so there are no requests.
    filter: filterOf(search, apiNamed.data?.[0]?.keySpaceId ?? api),
    rangeMs,
    clockMs: state === undefined ? 0 : state.now - usage.dataUpdatedAt,
    enabled: !usage.isPending && !isOff && (api === undefined || !apiNamed.isPending),
    isFollowing,
    isReading: () => isRead(list.current),
  });
  return {
    ...log,
    list,
    isOff,
    isCut: rangeMs < RANGES[range].ms,
    queriesPerHour: state?.limits.queriesPerHour,
    needed: `${of === "verifications" ? "api" : "ratelimit"}.*.read_analytics`,
  };
}

/**
 * Whether a person reads the list beyond its first rows or has focused a row, in which case new rows would move what the person is reading.
 */
function isRead(list: HTMLElement | null): boolean {
  const scroller = list?.querySelector(".table-scroller");
  return (scroller?.scrollTop ?? 0) > 0 || scroller?.querySelector("[role=row]:focus-within") != null;
}

function LogTable<Row extends RowOf[LogOf]>({
  search,
  set,
  isFollowing,
  setFollowing,
  log,
  columns,
  curl,
}: TabProps & {
  log: TabLog<Row>;
  columns: readonly Column<Row>[];
  curl: Example;
}): ReactNode {
  const navigate = useNavigate();
  const follow = useRef<HTMLButtonElement>(null);
  const { waiting, showWaiting, followError, followAgain, list } = log;
  const showNew = (): void => {
    showWaiting();
    list.current?.querySelector(".table-scroller")?.scrollTo({ top: 0 });
    // The focused button disappears. The focus does not move to a row, because new rows are not added while a row has the focus.
    follow.current?.focus();
  };
  return (
    <>
      <Filters search={search} set={set} />
      {log.isOff && <UsageOff />}
      {!log.isOff && (
        <div className="requests-list" ref={list}>
          <div className="requests-bar">
            <Button ref={follow} role="switch" aria-checked={isFollowing} onClick={() => setFollowing(!isFollowing)}>
              {isFollowing ? <Pause size={14} aria-hidden /> : <Play size={14} aria-hidden />}
              Follow live
            </Button>
            {waiting.count > 0 && (
              <Button kind="main" onClick={showNew}>
                {waiting.hasMore ? `More than ${waiting.count}` : waiting.count.toLocaleString("en")} new{" "}
                {waiting.count === 1 ? "request" : "requests"}
              </Button>
            )}
            <span className="muted" role="status">
              {followText(isFollowing, followError !== null, log.queriesPerHour)}
            </span>
          </div>
          {followError !== null && <ErrorNote error={followError} doing="Following the requests" again={followAgain} />}
          {log.error?.status === 403 && (
            <Notice>
              Reading requests needs the permission <code>{log.needed}</code>.
            </Notice>
          )}
          <Table
            label="Requests"
            one="request"
            columns={columns}
            pages={log}
            rowId={({ id }) => id}
            onOpen={({ requestId, timeMs }) => void navigate({ to: "/explain", search: { requestId, at: timeMs } })}
            doing="Reading the requests"
            empty={<NoRequests search={search} set={set} curl={curl} />}
          />
          {log.isCut && (
            <p className="muted">Older requests are not kept: the retention of the workspace is shorter.</p>
          )}
        </div>
      )}
    </>
  );
}

function followText(isFollowing: boolean, isStopped: boolean, queriesPerHour: number | undefined): string {
  if (!isFollowing) return "";
  if (isStopped) return "Following has stopped.";
  const quota =
    queriesPerHour === undefined ? "" : ` of the ${queriesPerHour.toLocaleString("en")} that the workspace has`;
  const perHour = 3_600_000 / FOLLOW_EVERY_MS;
  return `Reads new requests every ${durationText(FOLLOW_EVERY_MS)}. This takes ${perHour.toLocaleString("en")} queries per hour${quota}.`;
}

/** Example call that makes a first request. */
type Example =
  | { readonly procedure: "keys.verifyKey"; readonly body: Input<"keys.verifyKey"> }
  | { readonly procedure: "ratelimit.limit"; readonly body: Input<"ratelimit.limit"> };

const FILTERS = Object.keys(NO_FILTERS) as readonly (keyof RequestsSearch)[];

function NoRequests({ search, set, curl }: Pick<TabProps, "search" | "set"> & { curl: Example }): ReactNode {
  const { range = DEFAULT_RANGE } = search;
  const longer =
    range === LONGEST ? null : <Button onClick={() => set({ range: LONGEST })}>Show {RANGES[LONGEST].words}</Button>;
  if (FILTERS.some((name) => search[name] !== undefined)) {
    return (
      <EmptyState title="No requests match these filters.">
        <div className="field-row">
          <Button onClick={() => set(NO_FILTERS)}>Remove the filters</Button>
          {longer}
        </div>
      </EmptyState>
    );
  }
  return (
    <EmptyState title={`No requests in ${RANGES[range].words}.`}>
      {longer}
      <CodeBlock
        label="Make a request"
        text={curlLine({ origin: location.origin, rootKey: "<a root key>", ...curl })}
      />
    </EmptyState>
  );
}
