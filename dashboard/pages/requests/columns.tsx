import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Named } from "../../api/use-names.ts";
import { Time } from "../../components/ago.tsx";
import { LimitBadge, OutcomeBadge } from "../../components/state-badge.tsx";
import type { Column } from "../../components/table.tsx";
import type { RatelimitRow, VerificationRow } from "../../usage/requests.ts";

type Names = ReadonlyMap<string, Named | undefined>;

/** Text that a caller chose. It may be too long for its column. */
const Chosen = ({ text }: { text: string }): ReactNode => <span title={text}>{text}</span>;

const TIME = {
  id: "time",
  header: "Time",
  width: "7.5rem",
  cell: ({ timeMs }: { timeMs: number }) => <Time atMs={timeMs} form="log" />,
};
const REQUEST = {
  id: "request",
  header: "Request",
  width: "minmax(8rem, 1.5fr)",
  fromPx: 760,
  cell: ({ requestId }: { requestId: string }) => <code title={requestId}>{requestId}</code>,
};

const REGION: Column<VerificationRow> = {
  id: "region",
  header: "Region",
  width: "6rem",
  fromPx: 1100,
  cell: ({ region }) => <Chosen text={region} />,
};
const TAGS: Column<VerificationRow> = {
  id: "tags",
  header: "Tags",
  width: "minmax(6rem, 1fr)",
  fromPx: 1000,
  cell: ({ tags }) => <Chosen text={tags.join(", ")} />,
};

/** Columns of verifications. Regions and tags are optional, so they have a column only if a row has one. */
export const verificationColumns = (
  rows: readonly VerificationRow[],
  keys: Names,
  apis: Names,
): readonly Column<VerificationRow>[] => [
  TIME,
  {
    id: "outcome",
    header: "Outcome",
    width: "10rem",
    inCard: "corner",
    cell: ({ outcome }) => <OutcomeBadge outcome={outcome} />,
  },
  {
    id: "key",
    header: "Key",
    width: "minmax(4rem, 1.5fr)",
    cell: ({ keyId }) => {
      const named = keys.get(keyId);
      return (
        <>
          <Link to="/keys/$keyId" params={{ keyId }} search={{}} title={keyId}>
            {named?.name ?? named?.start ?? keyId}
          </Link>
          {named?.deleted === true && <span className="muted"> deleted</span>}
        </>
      );
    },
  },
  {
    id: "api",
    header: "API",
    width: "minmax(6rem, 1fr)",
    fromPx: 620,
    cell: ({ keySpaceId }) => <Chosen text={apis.get(keySpaceId)?.name ?? keySpaceId} />,
  },
  {
    id: "owner",
    header: "Owner",
    width: "minmax(6rem, 1fr)",
    fromPx: 500,
    cell: ({ externalId }) => <Chosen text={externalId} />,
  },
  ...(rows.some(({ region }) => region !== "") ? [REGION] : []),
  ...(rows.some(({ tags }) => tags.length > 0) ? [TAGS] : []),
  REQUEST,
];

export const ratelimitColumns = (namespaces: Names): readonly Column<RatelimitRow>[] => [
  TIME,
  {
    id: "result",
    header: "Result",
    width: "8.5rem",
    inCard: "corner",
    cell: ({ passed }) => <LimitBadge passed={passed} />,
  },
  {
    id: "namespace",
    header: "Namespace",
    width: "minmax(4rem, 1fr)",
    cell: ({ namespaceId }) => (
      <Link to="/ratelimits/$namespaceId" params={{ namespaceId }} title={namespaceId}>
        {namespaces.get(namespaceId)?.name ?? namespaceId}
      </Link>
    ),
  },
  {
    id: "identifier",
    header: "Identifier",
    width: "minmax(6rem, 1.5fr)",
    fromPx: 480,
    cell: ({ identifier }) => <Chosen text={identifier} />,
  },
  {
    id: "remaining",
    header: "Remaining",
    width: "7rem",
    fromPx: 900,
    cell: ({ limit, remaining }) => `${remaining.toLocaleString("en")} of ${limit.toLocaleString("en")}`,
  },
  {
    id: "override",
    header: "Override",
    width: "minmax(5rem, 1fr)",
    fromPx: 640,
    cell: ({ overrideId }) =>
      overrideId === "" ? <span className="muted">none</span> : <code title={overrideId}>{overrideId}</code>,
  },
  REQUEST,
];
