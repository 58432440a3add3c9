import { createLazyRoute, getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useMemo, useState } from "react";
import { type Row, usePages, useRead } from "../../api/queries.ts";
import { AgoOr, Time, TimeOr } from "../../components/ago.tsx";
import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { lockedBy } from "../../components/managed-badge.tsx";
import { Menu } from "../../components/menu.tsx";
import { Page } from "../../components/page.tsx";
import { StateBadge } from "../../components/state-badge.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { useCreate } from "../../components/use-create.ts";
import { useRequired } from "../../components/use-needs.ts";
import { useSelection } from "../../components/use-selection.ts";
import { CreateKey } from "./create-key.tsx";
import { ExportKeys } from "./export-keys.tsx";
import { readFilters, searchBody } from "./filters.ts";
import { ImportKeys } from "./import-keys.tsx";
import { KeyBatch, keyName } from "./key-batch.tsx";
import { KeyFilterBar } from "./key-filter-bar.tsx";
import { OwnerDialog } from "./owner-dialog.tsx";
import "./keys.css";

export const Route = createLazyRoute("/keys")({ component: KeysPage });
const here = getRouteApi("/keys");

type FoundKey = Row<"admin.searchKeys">;

const idOf = ({ keyId }: FoundKey): string => keyId;
const labelOf = (key: FoundKey): string => `Select ${keyName(key)}`;

const CHOOSE = "Choose an API first.";

function KeysPage(): ReactNode {
  const { create, ...filters } = here.useSearch();
  const navigate = useNavigate({ from: "/keys" });
  const needs = useRequired();
  const [opened, setOpened] = useState<"create" | "owner" | "import" | "export">();
  const lacking = needs("api.*.create_key");
  useCreate(create, () => lacking === undefined && setOpened("create"));
  const filter = JSON.stringify(filters);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the time of an expiry is set when the filters change.
  const body = useMemo(() => searchBody(filters, Date.now()), [filter]);
  const pages = usePages("admin.searchKeys", body);
  const selection = useSelection(pages.rows, { rowId: idOf, labelOf, filter });
  const named = useRead(
    "admin.resolveNames",
    { kind: "api", ids: [filters.api ?? ""] },
    { enabled: filters.api !== undefined },
  );
  const apiName = named.data?.[0]?.name ?? filters.api;
  const chosen = filters.api === undefined ? CHOOSE : undefined;
  const close = (): void => setOpened(undefined);
  const openKey = (keyId: string): void => void navigate({ to: "/keys/$keyId", params: { keyId }, search: {} });
  const isNarrowed = Object.keys(body).some((name) => name !== "apiId");
  return (
    <Page
      title={apiName === undefined ? "Keys" : `Keys of ${apiName}`}
      about={
        <>
          {filters.api !== undefined && (
            <>
              <Link to="/apis/$apiId" params={{ apiId: filters.api }}>
                About the API
              </Link>
              {" · "}
            </>
          )}
          {filters.expires === undefined ? "Newest keys first." : "Keys that expire next first."} Search by name, owner,
          id, start, or the key itself.
        </>
      }
      actions={
        <>
          <Menu
            label="More"
            items={[
              {
                label: "Disable all keys of an owner",
                onChoose: () => setOpened("owner"),
                unusable: needs("api.*.update_key"),
              },
              {
                label: "Import from CSV",
                onChoose: () => setOpened("import"),
                unusable: chosen ?? lacking,
              },
              { label: "Export as CSV", onChoose: () => setOpened("export"), unusable: chosen },
            ]}
          />
          <Button kind="main" unusable={lacking} onClick={() => setOpened("create")}>
            Create a key
          </Button>
        </>
      }
    >
      <KeyFilterBar
        filters={filters}
        apiName={apiName}
        onKeyId={openKey}
        onChange={(change) =>
          void navigate({ search: (before) => readFilters({ ...before, ...change }), replace: true })
        }
      />
      <Table
        label="Keys"
        one="key"
        columns={COLUMNS}
        pages={pages}
        rowId={idOf}
        onOpen={({ keyId }) => openKey(keyId)}
        doing="Searching the keys"
        empty={
          <EmptyState title={isNarrowed ? "No matching keys." : "No keys yet."}>
            {isNarrowed ? (
              <Button onClick={() => void navigate({ search: filters.api === undefined ? {} : { api: filters.api } })}>
                Remove the filters
              </Button>
            ) : (
              <Button unusable={lacking} onClick={() => setOpened("create")}>
                Create the first key
              </Button>
            )}
          </EmptyState>
        }
        selection={selection}
        selectionBar={<KeyBatch selection={selection} />}
      />
      {opened === "create" && (
        <CreateKey apiId={filters.api} externalId={filters.by === "owner" ? filters.q : undefined} onClose={close} />
      )}
      {filters.api !== undefined && (
        <>
          {opened === "import" && <ImportKeys apiId={filters.api} apiName={apiName ?? ""} onClose={close} />}
          {opened === "export" && <ExportKeys apiId={filters.api} apiName={apiName ?? ""} onClose={close} />}
        </>
      )}
      {opened === "owner" && (
        <OwnerDialog
          apiId={filters.api}
          apiName={apiName}
          owner={filters.by === "owner" ? (filters.q ?? "") : ""}
          onClose={close}
        />
      )}
    </Page>
  );
}

const COLUMNS: readonly Column<FoundKey>[] = [
  {
    id: "start",
    header: "Key",
    width: "minmax(6rem, 1fr)",
    cell: ({ keyId, start }) => (
      <Link to="/keys/$keyId" params={{ keyId }} search={{}}>
        <code>{start === "" ? keyId : `${start}…`}</code>
      </Link>
    ),
  },
  {
    id: "name",
    header: "Name",
    width: "minmax(5rem, 2fr)",
    cell: ({ name }) => (name === undefined ? <span className="muted">–</span> : <span title={name}>{name}</span>),
  },
  {
    id: "owner",
    header: "Owner",
    width: "minmax(6rem, 1.5fr)",
    fromPx: 560,
    cell: ({ externalId }) => externalId ?? <span className="muted">–</span>,
  },
  {
    id: "state",
    header: "State",
    width: "minmax(6.5rem, 1.5fr)",
    inCard: "corner",
    cell: ({ enabled, expires, manager }) => (
      <>
        <StateBadge enabled={enabled} expires={expires} nowMs={Date.now()} />{" "}
        {manager !== undefined && <Badge title={lockedBy(manager)}>manifest</Badge>}
      </>
    ),
  },
  {
    id: "credits",
    header: "Credits",
    width: "6rem",
    isNumber: true,
    fromPx: 720,
    cell: ({ remaining }) => remaining?.toLocaleString("en") ?? "∞",
  },
  {
    id: "expires",
    header: "Expires",
    width: "7.5rem",
    fromPx: 860,
    cell: ({ expires }) => <TimeOr atMs={expires} otherwise="never" />,
  },
  {
    id: "used",
    header: "Last used",
    width: "6.5rem",
    fromPx: 960,
    cell: ({ lastUsedAt }) => <AgoOr atMs={lastUsedAt} otherwise="never" />,
  },
  {
    id: "created",
    header: "Created",
    width: "7.5rem",
    fromPx: 1080,
    cell: ({ createdAt }) => <Time atMs={createdAt} />,
  },
];
