import { createLazyRoute, getRouteApi, Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useRead } from "../../api/queries.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { ManagedNotice } from "../../components/managed-badge.tsx";
import { Page } from "../../components/page.tsx";
import { Skeleton } from "../../components/skeleton.tsx";
import { UsagePlot } from "../../components/usage-plot.tsx";
import { KeyActions } from "./key-actions.tsx";
import { KeyCredits, KeyDetailsList, KeyMeta, KeyState } from "./key-details-list.tsx";
import { KeyLimits } from "./key-limits.tsx";
import { KeyRights } from "./key-rights.tsx";
import { LastRequests } from "./last-requests-table.tsx";
import "../../components/sections.css";

export const Route = createLazyRoute("/keys/$keyId")({ component: KeyPage });
const here = getRouteApi("/keys/$keyId");

/** Polling interval; counters change while the page is open. */
const EVERY_MS = 10_000;

function KeyPage(): ReactNode {
  const { keyId } = here.useParams();
  const read = useRead("admin.getKeyDetails", { keyId }, { everyMs: EVERY_MS });
  const details = read.data;
  return (
    <Page
      title={details?.key.name ?? (details === undefined ? "Key" : `${details.key.start}…`)}
      about={
        <>
          {details === undefined ? (
            <Link to="/keys">All keys</Link>
          ) : (
            <>
              <Link to="/apis/$apiId" params={{ apiId: details.apiId }}>
                {details.apiName}
              </Link>
              {" · "}
              <Link to="/keys" search={{ api: details.apiId }}>
                Its keys
              </Link>
            </>
          )}
          {" · "}
          <Link to="/usage" search={{ key: keyId }}>
            Usage
          </Link>
          {" · "}
          <Link to="/audit" search={{ targetId: keyId }}>
            Audit log
          </Link>
          {" · "}
          <Link to="/explain" search={{ keyId }}>
            Explain
          </Link>
          {" · "}
          <code>{keyId}</code>
        </>
      }
      actions={details !== undefined && <KeyActions details={details} />}
    >
      {read.error !== null && (
        <ErrorNote error={read.error} doing="Reading the key" again={() => void read.refetch()} />
      )}
      {details === undefined && read.error === null && <Skeleton heightPx={420} label="Reading …" hasRows />}
      {details !== undefined && (
        <>
          {details.manager !== undefined && <ManagedNotice manager={details.manager} />}
          <KeyState details={details} />
          <div className="sections">
            <section aria-labelledby="key-details-list">
              <h2 id="key-details-list">Facts</h2>
              <KeyDetailsList details={details} />
            </section>
            <section aria-labelledby="key-credits">
              <h2 id="key-credits">Credits</h2>
              <KeyCredits details={details} />
            </section>
            <section aria-labelledby="key-limits">
              <h2 id="key-limits">Limits</h2>
              <KeyLimits details={details} />
            </section>
            <section aria-labelledby="key-rights">
              <h2 id="key-rights">Roles and permissions</h2>
              <KeyRights details={details} />
            </section>
            <section className="section-wide" aria-labelledby="key-usage">
              <h2 id="key-usage">Usage of the last 30 days</h2>
              <UsagePlot of={{ keyId }} label="Verifications of the key by outcome" />
            </section>
            <section className="section-wide" aria-labelledby="key-requests">
              <h2 id="key-requests">Last requests</h2>
              <LastRequests keyId={keyId} />
            </section>
            <section className="section-wide" aria-labelledby="key-meta">
              <h2 id="key-meta">Meta</h2>
              <KeyMeta details={details} />
            </section>
          </div>
        </>
      )}
    </Page>
  );
}
