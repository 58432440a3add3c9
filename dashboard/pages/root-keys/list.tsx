import { createLazyRoute, getRouteApi, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { usePages } from "../../api/queries.ts";
import { TimeOr } from "../../components/ago.tsx";
import { Button } from "../../components/button.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { FilterMenu } from "../../components/filter-menu.tsx";
import { Page } from "../../components/page.tsx";
import { SearchField } from "../../components/search-field.tsx";
import { Select } from "../../components/select.tsx";
import { StateOf } from "../../components/state-badge.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { chipOf } from "../../components/usage-selects.tsx";
import { useCreate } from "../../components/use-create.ts";
import { useRequired } from "../../components/use-needs.ts";
import { CreateRootKey } from "./create-root-key.tsx";
import { findingText, nameOf, type RootKey, stateWord } from "./root-key.ts";
import { RootKeyDrawer } from "./root-key-drawer.tsx";
import { type RootKeySearch, readSearch } from "./search.ts";
import { inWords } from "./tuples.ts";
import "./root-keys.css";

export const Route = createLazyRoute("/root-keys")({ component: RootKeysPage });
const here = getRouteApi("/root-keys");

// Columns of the list. The name is isolated, so that control characters in it cannot change the direction of the text around it.
const COLUMNS: readonly Column<RootKey>[] = [
  {
    id: "name",
    header: "Name",
    width: "minmax(9rem, 2fr)",
    cell: (row) => <bdi title={nameOf(row)}>{nameOf(row)}</bdi>,
  },
  { id: "start", header: "Start", width: "8.5rem", fromPx: 800, cell: ({ start }) => <code>{start}…</code> },
  { id: "environment", header: "Environment", width: "7rem", fromPx: 560, cell: (row) => row.environment ?? "" },
  {
    id: "permissions",
    header: "May",
    width: "minmax(8rem, 3fr)",
    fromPx: 640,
    cell: ({ permissions }) => <span title={permissions.join("\n")}>{inWords(permissions)}</span>,
  },
  {
    id: "used",
    header: "Last used",
    width: "6.5rem",
    fromPx: 720,
    cell: ({ lastUsedOn }) => (lastUsedOn === undefined ? "never" : <span title="UTC day">{lastUsedOn}</span>),
  },
  {
    id: "expires",
    header: "Expires",
    width: "7.5rem",
    fromPx: 900,
    cell: ({ expires }) => <TimeOr atMs={expires} otherwise="never" />,
  },
  {
    id: "state",
    header: "State",
    inCard: "corner",
    width: "6rem",
    cell: ({ state }) => <StateOf state={stateWord(state)} />,
  },
  {
    id: "findings",
    header: "Notices",
    width: "minmax(6rem, 1fr)",
    fromPx: 480,
    cell: ({ findings }) => findings.map(findingText).join(", "),
  },
];

function RootKeysPage(): ReactNode {
  const { search, environment, state, rootKey, create } = here.useSearch();
  const navigate = useNavigate({ from: "/root-keys" });
  const needs = useRequired();
  const [isCreating, setIsCreating] = useState(false);
  const lacking = needs("workspace.*.create_root_key");
  useCreate(create, () => setIsCreating(lacking === undefined));
  const filter = {
    ...(search === undefined ? {} : { search }),
    ...(environment === undefined ? {} : { environment }),
    ...(state === undefined ? {} : { state }),
  };
  const pages = usePages("admin.listRootKeys", filter);
  /** Sets one URL parameter and keeps the others. */
  const set = (name: keyof RootKeySearch, value: string | undefined, replace = true): void =>
    void navigate({ search: (before) => readSearch({ ...before, [name]: value }), replace });
  const isFiltered = Object.keys(filter).length > 0;
  return (
    <Page
      title="Root keys"
      about="Keys for the Postern API, for backends, the operator and scripts. Create one for each user and environment, with only the permissions that it needs."
      actions={
        <Button kind="main" unusable={lacking} onClick={() => setIsCreating(true)}>
          Create a root key
        </Button>
      }
    >
      <div className="root-key-filters">
        <SearchField label="Name, id or start contains" value={search ?? ""} onChange={(text) => set("search", text)} />
        <FilterMenu
          chips={[
            ...chipOf("State", state && stateWord(state), () => set("state", undefined)),
            ...chipOf("Environment", environment, () => set("environment", undefined)),
          ]}
        >
          <Select
            label="State"
            value={state ?? "any"}
            options={[
              { value: "any", label: "Any" },
              { value: "active", label: "Enabled" },
              { value: "disabled", label: "Disabled" },
              { value: "expired", label: "Expired" },
            ]}
            onChange={(value) => set("state", value)}
          />
          <SearchField label="Environment" value={environment ?? ""} onChange={(text) => set("environment", text)} />
        </FilterMenu>
      </div>
      <Table
        label="Root keys"
        one="root key"
        columns={COLUMNS}
        pages={pages}
        rowId={({ rootKeyId }) => rootKeyId}
        onOpen={({ rootKeyId }) => set("rootKey", rootKeyId, false)}
        openId={rootKey}
        doing="Reading the root keys"
        empty={
          <EmptyState title={isFiltered ? "No root keys match the filter." : "No root keys yet."}>
            {isFiltered ? (
              <Button onClick={() => void navigate({ search: {}, replace: true })}>Remove the filters</Button>
            ) : (
              <Button unusable={lacking} onClick={() => setIsCreating(true)}>
                Create the first root key
              </Button>
            )}
          </EmptyState>
        }
      />
      {isCreating && <CreateRootKey onClose={() => setIsCreating(false)} />}
      {rootKey !== undefined && (
        <RootKeyDrawer
          key={rootKey}
          rootKeyId={rootKey}
          onOpen={(rootKeyId) => set("rootKey", rootKeyId, false)}
          onClose={() => set("rootKey", undefined)}
        />
      )}
    </Page>
  );
}
