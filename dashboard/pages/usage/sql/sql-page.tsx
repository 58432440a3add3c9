import { createLazyRoute, Link, useLocation, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useEffect, useId, useRef, useState } from "react";
import { ApiError } from "../../../api/api-error.ts";
import { useRead } from "../../../api/queries.ts";
import { useWorkspace } from "../../../api/session.ts";
import { type UsageState, useUsageState } from "../../../api/use-usage.ts";
import { Ago } from "../../../components/ago.tsx";
import { Button } from "../../../components/button.tsx";
import { CopyButton } from "../../../components/copy-button.tsx";
import { csvOf, downloadCsv } from "../../../components/download.ts";
import { ErrorNote } from "../../../components/error-note.tsx";
import { Notice } from "../../../components/notice.tsx";
import { Page } from "../../../components/page.tsx";
import { Tabs } from "../../../components/tabs.tsx";
import { durationText } from "../../../components/time.ts";
import { errorPosition, offsetOf } from "../../../usage/error-position.ts";
import { EXAMPLES } from "../../../usage/examples.ts";
import { fragmentOf, readFragment } from "../../../usage/sql-fragment.ts";
import { type GivenText, QueryEditor } from "./query-editor.tsx";
import { ResultPlot } from "./result-plot.tsx";
import { ResultTable } from "./result-table.tsx";
import { SchemaPanel } from "./schema-panel.tsx";
import { useHistory } from "./use-history.ts";
import { type QueryRun, useQueryRun } from "./use-query-run.ts";
import "../usage.css";
import "./sql.css";

export const Route = createLazyRoute("/usage/sql")({ component: SqlPage });

function SqlPage(): ReactNode {
  const { hash } = useLocation();
  const navigate = useNavigate({ from: "/usage/sql" });
  const { workspace } = useWorkspace();
  const [given, setGiven] = useState<GivenText>(() => ({ text: readFragment(hash) ?? EXAMPLES[0]?.sql ?? "" }));
  const [sql, setSql] = useState(given.text);
  const show = (text: string): void => {
    setSql(text);
    setGiven({ text });
  };
  /**
   * The query that was last read from or written to the page's URL. A query that the page itself wrote to the URL is not loaded again,
   * because the user may have typed more since.
   */
  const addressed = useRef(given.text);
  // Shows the query in a new URL, for example after the Back button.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the effect depends only on the URL.
  useEffect(() => {
    const shared = readFragment(hash);
    if (shared === undefined || shared === addressed.current) return;
    addressed.current = shared;
    show(shared);
  }, [hash]);
  const schema = useRead("admin.getAnalyticsSchema", {});
  const state = useUsageState();
  const { run, start, cancel } = useQueryRun();
  const { history, add, clear } = useHistory(workspace.id);
  const hintId = useId();
  const place =
    run.kind === "failed" && run.sql === sql && run.error instanceof ApiError
      ? errorPosition(run.error.detail)
      : undefined;
  const runText = (text: string): void => {
    if (text.trim() === "") return;
    addressed.current = text;
    start(text);
    add(text);
    void navigate({ hash: fragmentOf(text), replace: true });
  };
  const runIt = (): void => runText(sql);

  return (
    <Page
      title="Usage with SQL"
      about="A SELECT over key verifications or rate-limit decisions, in a subset of ClickHouse SQL."
      actions={<Link to="/usage">Charts</Link>}
    >
      {state.data?.enabled === false && (
        <Notice kind="warn">
          <p>
            <strong>Usage queries are off for this workspace.</strong> An admin of the workspace can turn them on in the
            settings or with <code>postern workspace update --analytics on</code>.
          </p>
        </Notice>
      )}
      <div className="sql-layout">
        <div className="sql-main">
          <QueryEditor
            given={given}
            schema={schema.data}
            problemAt={place && offsetOf(sql, place)}
            describedBy={hintId}
            onChange={setSql}
            onRun={runText}
          />
          <div className="sql-bar">
            {run.kind === "running" ? (
              <Button kind="main" onClick={cancel}>
                Cancel
              </Button>
            ) : (
              <Button kind="main" onClick={runIt} unusable={sql.trim() === "" ? "Enter a query." : undefined}>
                Run
              </Button>
            )}
            <CopyButton text={shareAddress(sql)} label="Copy link" />
            <span id={hintId} className="muted">
              Ctrl+Enter or Cmd+Enter runs the query. {limitsText(state.data)}
            </span>
          </div>
          <Outcome run={run} rowsMax={state.data?.limits.maxRows} again={runIt} place={place} />
        </div>
        <aside className="sql-side" aria-label="Help with queries">
          <details open>
            <summary>Examples</summary>
            <ul>
              {EXAMPLES.map((example) => (
                <li key={example.title}>
                  <Button kind="quiet" onClick={() => show(example.sql)}>
                    {example.title}
                  </Button>
                </li>
              ))}
            </ul>
          </details>
          <details>
            <summary>Recent queries</summary>
            {history.length === 0 ? (
              <p className="muted">No queries yet. This browser keeps your recent queries, without their results.</p>
            ) : (
              <>
                <ul>
                  {history.map((past) => (
                    <li key={past.sql}>
                      <Button kind="quiet" className="sql-past" title={past.sql} onClick={() => show(past.sql)}>
                        {past.sql.replace(/\s+/g, " ")}
                      </Button>{" "}
                      <span className="muted">
                        <Ago atMs={past.atMs} />
                      </span>
                    </li>
                  ))}
                </ul>
                <Button onClick={clear}>Clear</Button>
              </>
            )}
          </details>
          <h2>Tables and columns</h2>
          {schema.error !== null && (
            <ErrorNote error={schema.error} doing="Reading the tables" again={() => void schema.refetch()} />
          )}
          {schema.data !== undefined && <SchemaPanel schema={schema.data} />}
        </aside>
      </div>
    </Page>
  );
}

const shareAddress = (sql: string): string =>
  `${location.origin}${location.pathname}${location.search}#${fragmentOf(sql)}`;

function limitsText(state: UsageState | undefined): string {
  if (state === undefined) return "";
  const { limits, retentionDays } = state;
  const megabytes = Math.round(limits.maxResponseBytes / 1024 / 1024);
  return `A response has at most ${limits.maxRows.toLocaleString("en")} rows and ${megabytes} MB. A query runs for at most ${durationText(limits.timeoutMs)}. The workspace may run ${limits.queriesPerHour.toLocaleString("en")} queries per hour. Verifications are kept for ${retentionDays.verifications} days.`;
}

function Outcome({
  run,
  rowsMax,
  again,
  place,
}: {
  run: QueryRun;
  rowsMax: number | undefined;
  again: () => void;
  place: ReturnType<typeof errorPosition>;
}): ReactNode {
  const [view, setView] = useState<"table" | "plot">("table");
  switch (run.kind) {
    case "none":
      return null;
    case "running":
      return (
        <p className="muted" role="status">
          Running …
        </p>
      );
    case "cancelled":
      return <p role="status">The query was canceled.</p>;
    case "failed":
      if (place === undefined) return <ErrorNote error={run.error} doing="Running the query" again={again} />;
      return (
        <Notice kind="bad">
          <p>
            <strong>
              Line {place.line}, column {place.column}:
            </strong>{" "}
            {place.message}
          </p>
          <p>The query marks the position. It was not run and does not count against the quota.</p>
        </Notice>
      );
    case "answered": {
      const { rows, columns, tookMs, atMs } = run;
      const isCut = rowsMax !== undefined && rows.length >= rowsMax;
      return (
        <section className="sql-outcome" aria-label="Result">
          <div className="sql-bar">
            <span role="status">
              {rows.length.toLocaleString("en")} {rows.length === 1 ? "row" : "rows"} in {durationText(tookMs)},{" "}
              <Ago atMs={atMs} />
            </span>
            {isCut && <strong>Truncated at {rowsMax.toLocaleString("en")} rows: there may be more.</strong>}
            {rows.length > 0 && (
              <Button onClick={() => downloadCsv("usage.csv", csvOf(columns, rows))}>Download CSV</Button>
            )}
          </div>
          {rows.length === 0 ? (
            <p className="muted">The query returned no rows.</p>
          ) : (
            <Tabs
              label="View"
              value={view}
              onChange={setView}
              tabs={[
                { value: "table", label: "Table", content: <ResultTable columns={columns} rows={rows} /> },
                { value: "plot", label: "Plot", content: <ResultPlot columns={columns} rows={rows} /> },
              ]}
            />
          )}
        </section>
      );
    }
  }
}
