import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { usePages } from "../../api/queries.ts";
import { AgoOr } from "../../components/ago.tsx";
import { Button } from "../../components/button.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { ManagedBadge } from "../../components/managed-badge.tsx";
import { Skeleton } from "../../components/skeleton.tsx";
import { StateBadge } from "../../components/state-badge.tsx";
import { UsagePlot } from "../../components/usage-plot.tsx";

const USAGE_HEIGHT_PX = 160;
/** Height of a table of two keys. */
const KEYS_PX = 90;

/** Keys of an owner, newest first. */
export function KeysOfIdentity({ externalId }: { externalId: string }): ReactNode {
  const { rows, error, isLoading, hasMore, isLoadingMore, readMore, again } = usePages("admin.searchKeys", {
    externalId,
  });
  return (
    <section>
      <h3>Keys</h3>
      {error !== null && <ErrorNote error={error} doing="Reading the keys" again={again} />}
      {isLoading && <Skeleton heightPx={KEYS_PX} hasRows />}
      {rows.length === 0 && error === null && !isLoading && <p className="muted">None.</p>}
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
                  <Link to="/keys/$keyId" params={{ keyId }} title={keyId}>
                    <code>{start === "" ? keyId : `${start}…`}</code>
                  </Link>
                </td>
                <td>
                  {name ?? <span className="muted">none</span>} <ManagedBadge manager={manager} />
                </td>
                <td>
                  <StateBadge enabled={enabled} expires={expires} nowMs={Date.now()} />
                </td>
                <td>
                  <AgoOr atMs={lastUsedAt} otherwise="never" />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {rows.length > 0 && (
        <Link to="/keys" search={{ by: "owner", q: externalId }}>
          All keys of the owner
        </Link>
      )}
      {hasMore && (
        <Button kind="quiet" onClick={readMore} isBusy={isLoadingMore}>
          Read more
        </Button>
      )}
    </section>
  );
}

/** Usage of the owner's keys in the last 30 days. */
export function UsageOfIdentity({ externalId }: { externalId: string }): ReactNode {
  return (
    <section>
      <h3>Usage of 30 days</h3>
      <UsagePlot
        of={{ externalId }}
        label={`Verifications of the keys of ${externalId} by outcome`}
        heightPx={USAGE_HEIGHT_PX}
      />
      <Link to="/requests" search={{ owner: externalId, range: "7d" }}>
        Requests of this owner
      </Link>{" "}
      <Link to="/usage" search={{ owner: externalId, range: "30d" }}>
        All usage of the owner
      </Link>
    </section>
  );
}
