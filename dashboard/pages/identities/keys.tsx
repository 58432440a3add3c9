import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { usePages } from "../../api/queries.ts";
import { useUsage } from "../../api/use-usage.ts";
import { AgoOr } from "../../components/ago.tsx";
import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { ManagedBadge } from "../../components/managed-badge.tsx";
import { OutcomesPlot } from "../../components/outcomes-plot.tsx";

/** Keys of an owner, newest first. */
export function KeysOfIdentity({ externalId }: { externalId: string }): ReactNode {
  const { rows, error, isLoading, hasMore, isLoadingMore, readMore, again } = usePages("admin.searchKeys", {
    externalId,
  });
  return (
    <section>
      <h3>Keys</h3>
      {error !== null && <ErrorNote error={error} doing="Reading the keys" again={again} />}
      {rows.length === 0 && error === null && <p className="muted">{isLoading ? "Loading …" : "None."}</p>}
      {rows.length > 0 && (
        <table className="counts">
          <thead>
            <tr>
              <th>Key</th>
              <th>Name</th>
              <th>State</th>
              <th>Last used</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(({ keyId, start, name, enabled, expires, lastUsedAt, manager }) => (
              <tr key={keyId}>
                <td>
                  <code title={keyId}>{start}…</code>
                </td>
                <td>
                  {name ?? <span className="muted">none</span>} <ManagedBadge manager={manager} />
                </td>
                <td>{stateOf(enabled, expires)}</td>
                <td>
                  <AgoOr atMs={lastUsedAt} otherwise="never" />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {hasMore && (
        <Button kind="quiet" onClick={readMore} isBusy={isLoadingMore}>
          Read more
        </Button>
      )}
    </section>
  );
}

function stateOf(enabled: boolean, expires: number | undefined): ReactNode {
  if (!enabled) return <Badge kind="bad">disabled</Badge>;
  if (expires !== undefined && expires <= Date.now()) return <Badge kind="warn">expired</Badge>;
  return <Badge kind="good">active</Badge>;
}

/** Usage of the owner's keys in the last 30 days. */
export function UsageOfIdentity({ externalId }: { externalId: string }): ReactNode {
  const { outcomes, error, isLoading, countedUntilMs, again } = useUsage({ externalId });
  return (
    <section>
      <h3>Usage of 30 days</h3>
      {error !== null && <ErrorNote error={error} doing="Reading the usage" again={again} />}
      {outcomes === undefined && error === null && <p className="muted">{isLoading ? "Loading …" : "None."}</p>}
      {outcomes !== undefined && (
        <OutcomesPlot
          label={`Verifications of the keys of ${externalId} by outcome`}
          outcomes={outcomes}
          countedUntilMs={countedUntilMs}
          heightPx={160}
        />
      )}
      <Link to="/requests" search={{ owner: externalId, range: "7d" }}>
        Requests of this owner
      </Link>
    </section>
  );
}
