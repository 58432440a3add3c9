import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useRead } from "../../api/queries.ts";
import { AgoOr } from "../../components/ago.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { KeyTable } from "../../components/key-table.tsx";
import { Skeleton } from "../../components/skeleton.tsx";
import { StateBadge } from "../../components/state-badge.tsx";

const SHOWN = 10;

/** The newest keys of an API, and a link to all of them. */
export function KeysOfApi({ apiId }: { apiId: string }): ReactNode {
  const { data, error, refetch } = useRead("admin.searchKeys", { apiId, limit: SHOWN });
  if (error !== null) return <ErrorNote error={error} doing="Reading the keys" again={() => void refetch()} />;
  if (data === undefined) return <Skeleton heightPx={SHOWN * 30} hasRows />;
  if (data.length === 0) {
    return (
      <EmptyState title="This API has no keys yet.">
        <Link to="/keys" search={{ api: apiId }}>
          Create a key in the list of its keys
        </Link>
      </EmptyState>
    );
  }
  return (
    <>
      <KeyTable label="Newest keys" heads={["Key", "State", "Name", "Owner", "Last used"]}>
        {data.map(({ keyId, start, name, externalId, enabled, expires, lastUsedAt }) => (
          <tr key={keyId}>
            <th scope="row">
              <Link to="/keys/$keyId" params={{ keyId }}>
                <code>{start === "" ? keyId : `${start}…`}</code>
              </Link>
            </th>
            <td>
              <StateBadge enabled={enabled} expires={expires} nowMs={Date.now()} />
            </td>
            <td className="cut key-cut" title={name}>
              {name ?? <span className="muted">–</span>}
            </td>
            <td className="cut key-cut" title={externalId}>
              {externalId ?? <span className="muted">–</span>}
            </td>
            <td>
              <AgoOr atMs={lastUsedAt} otherwise="never" />
            </td>
          </tr>
        ))}
      </KeyTable>
      <Link to="/keys" search={{ api: apiId }}>
        All keys of the API
      </Link>
    </>
  );
}
