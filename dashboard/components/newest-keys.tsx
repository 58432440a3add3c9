import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useRead } from "../api/queries.ts";
import { AgoOr } from "./ago.tsx";
import { EmptyState } from "./empty-state.tsx";
import { ErrorNote } from "./error-note.tsx";
import { KeyTable } from "./key-table.tsx";
import { ManagedBadge } from "./managed-badge.tsx";
import { Skeleton } from "./skeleton.tsx";
import { StateBadge } from "./state-badge.tsx";

const SHOWN = 10;

/** The newest keys of an API or an owner, and a link to all of them. */
export function NewestKeys({ of }: { of: { readonly apiId: string } | { readonly externalId: string } }): ReactNode {
  const { data, error, refetch } = useRead("admin.searchKeys", { ...of, limit: SHOWN });
  const isOfApi = "apiId" in of;
  const one = isOfApi ? "API" : "owner";
  const narrowed = isOfApi ? { api: of.apiId } : ({ by: "owner", q: of.externalId } as const);
  if (error !== null) return <ErrorNote error={error} doing="Reading the keys" again={() => void refetch()} />;
  if (data === undefined) return <Skeleton heightPx={SHOWN * 30} hasRows />;
  if (data.length === 0) {
    return (
      <EmptyState title={`This ${one} has no keys yet.`}>
        <Link to="/keys" search={{ ...narrowed, create: "key" }}>
          Create the first key
        </Link>
      </EmptyState>
    );
  }
  return (
    <>
      <KeyTable label="Newest keys" heads={["Key", "State", "Name", ...(isOfApi ? ["Owner"] : []), "Last used"]}>
        {data.map(({ keyId, start, name, externalId, enabled, expires, lastUsedAt, manager }) => (
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
            {isOfApi && (
              <td className="cut key-cut" title={externalId}>
                {externalId ?? <span className="muted">–</span>}
              </td>
            )}
            <td>
              <AgoOr atMs={lastUsedAt} otherwise="never" />
            </td>
          </tr>
        ))}
      </KeyTable>
      <Link to="/keys" search={narrowed}>
        All keys of the {one}
      </Link>
    </>
  );
}
