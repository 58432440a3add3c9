import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { ApiError } from "../api/api-error.ts";
import { fragmentOf } from "../usage/sql-fragment.ts";
import { CopyButton } from "./copy-button.tsx";
import { ErrorNote } from "./error-note.tsx";
import { Skeleton } from "./skeleton.tsx";
import "./usage-panel.css";

/** Panel of one chart: its title, the chart or the error, and the query. */
export function Panel<T>({
  title,
  about,
  isWide = false,
  spacePx = 200,
  response,
  query,
  doing,
  again,
  isReportedAbove,
  children,
}: {
  title: string;
  about?: ReactNode;
  isWide?: boolean;
  /** Height to reserve while the content is being loaded. */
  spacePx?: number;
  response: { readonly data: T | undefined; readonly error: ApiError | null; readonly isFetching: boolean };
  /** SQL text of the query. */
  query?: string;
  /** Action to name in an error, such as "Counting the outcomes". */
  doing: string;
  again: () => void;
  /** Whether the page already shows this error. */
  isReportedAbove: boolean;
  children: (data: T) => ReactNode;
}): ReactNode {
  const { data, error, isFetching } = response;
  return (
    <section
      className={isWide ? "usage-panel usage-panel-wide" : "usage-panel"}
      aria-label={title}
      aria-busy={isFetching}
    >
      <div className="usage-panel-head">
        <h2>{title}</h2>
        {about !== undefined && <p className="muted">{about}</p>}
      </div>
      {error !== null && !isReportedAbove && <ErrorNote error={error} doing={doing} again={again} />}
      {error !== null && isReportedAbove && <p className="muted">Not available: see above.</p>}
      {data === undefined && error === null && <Skeleton heightPx={spacePx} label={`${doing} …`} />}
      {data !== undefined && error === null && children(data)}
      {query !== undefined && <SqlOf sql={query} title={title} />}
    </section>
  );
}

function SqlOf({ sql, title }: { sql: string; title: string }): ReactNode {
  return (
    <details className="usage-sql">
      <summary className="muted">
        SQL<span className="unseen"> of {title}</span>
      </summary>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable element must be reachable by keyboard. */}
      <pre tabIndex={0}>
        <code>{sql}</code>
      </pre>
      <div className="field-row">
        <Link to="/usage/sql" hash={fragmentOf(sql)}>
          Open in the editor
        </Link>
        <CopyButton text={sql} label="Copy SQL" />
      </div>
    </details>
  );
}
