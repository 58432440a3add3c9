import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { usePages } from "../../api/queries.ts";
import { AgoOr } from "../../components/ago.tsx";
import { Button } from "../../components/button.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { KeyTable } from "../../components/key-table.tsx";
import { ManagedBadge } from "../../components/managed-badge.tsx";
import { Skeleton } from "../../components/skeleton.tsx";
import { StateBadge } from "../../components/state-badge.tsx";

/** Height of a table of two keys. */
const KEYS_PX = 90;

/** Keys of an owner, newest first. */
export function KeysOfIdentity({ externalId }: { externalId: string }): ReactNode {
  const { rows, error, isLoading, hasMore, isLoadingMore, readMore, again } = usePages("admin.searchKeys", {
    externalId,
  });
  return (
    <>
      {error !== null && <ErrorNote error={error} doing="Reading the keys" again={again} />}
      {rows.length === 0 && error === null && (isLoading ? <Skeleton heightPx={KEYS_PX} hasRows /> : <NoKeys />)}
      {rows.length > 0 && (
        <KeyTable label="Keys" heads={["Key", "State", "Name", "Last used"]}>
          {rows.map(({ keyId, start, name, enabled, expires, lastUsedAt, manager }) => (
            <tr key={keyId}>
              <th scope="row">
                <Link to="/keys/$keyId" params={{ keyId }} title={keyId}>
                  <code>{start === "" ? keyId : `${start}…`}</code>
                </Link>
              </th>
              <td>
                <StateBadge enabled={enabled} expires={expires} nowMs={Date.now()} />
              </td>
              <td className="cut key-cut" title={name}>
                {name ?? <span className="muted">–</span>} <ManagedBadge manager={manager} />
              </td>
              <td>
                <AgoOr atMs={lastUsedAt} otherwise="never" />
              </td>
            </tr>
          ))}
        </KeyTable>
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
    </>
  );
}

function NoKeys(): ReactNode {
  return (
    <EmptyState title="This identity has no keys.">
      <Link to="/keys" search={{ create: "key" }}>
        Create a key
      </Link>
    </EmptyState>
  );
}
