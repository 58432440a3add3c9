import { createLazyRoute, getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { type Row, usePages } from "../../api/queries.ts";
import { Time } from "../../components/ago.tsx";
import { Button } from "../../components/button.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { lockedBy } from "../../components/managed-badge.tsx";
import { Menu } from "../../components/menu.tsx";
import { Page } from "../../components/page.tsx";
import { SearchField } from "../../components/search-field.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { useCreate } from "../../components/use-create.ts";
import { useRequired } from "../../components/use-needs.ts";
import { withText } from "../../search-params.ts";
import { ApiBadges } from "./badges.tsx";
import { DeleteApi } from "./delete-api.tsx";
import { CreateApi, RenameApi } from "./name-dialogs.tsx";

export const Route = createLazyRoute("/apis")({ component: ApisPage });
const here = getRouteApi("/apis");

/** The open dialog, and the API to rename or delete. */
type Opened = { readonly kind: "create" } | { readonly kind: "rename" | "delete"; readonly api: Row<"admin.listApis"> };

function ApisPage(): ReactNode {
  const { search, create } = here.useSearch();
  const navigate = useNavigate({ from: "/apis" });
  const needs = useRequired();
  const [opened, setOpened] = useState<Opened>();
  const lacking = needs("api.*.create_api");
  useCreate(create, () => lacking === undefined && setOpened({ kind: "create" }));
  const pages = usePages("admin.listApis", search === undefined ? {} : { search });
  const close = (): void => setOpened(undefined);
  return (
    <Page
      title="APIs"
      about="Named groups of keys. A key is valid only for its API."
      actions={
        <Button kind="main" unusable={lacking} onClick={() => setOpened({ kind: "create" })}>
          Create an API
        </Button>
      }
    >
      <SearchField
        label="Name or id contains"
        value={search ?? ""}
        onChange={(text) => void navigate({ search: withText("search", text), replace: true })}
      />
      <Table
        label="APIs"
        one="API"
        columns={columnsOf({
          onOpen: setOpened,
          mayUpdate: needs("api.*.update_api"),
          mayDelete: needs("api.*.delete_api"),
        })}
        pages={pages}
        rowId={({ apiId }) => apiId}
        onOpen={({ apiId }) => void navigate({ to: "/apis/$apiId", params: { apiId }, search: {} })}
        doing="Reading the APIs"
        empty={
          <EmptyState title={search === undefined ? "No APIs yet." : `No API has “${search}” in its name or id.`}>
            {search === undefined ? (
              <Button unusable={lacking} onClick={() => setOpened({ kind: "create" })}>
                Create the first API
              </Button>
            ) : (
              <Button onClick={() => void navigate({ search: withText("search", ""), replace: true })}>
                Clear the search
              </Button>
            )}
          </EmptyState>
        }
      />
      {opened?.kind === "create" && <CreateApi onClose={close} />}
      {opened?.kind === "rename" && <RenameApi api={opened.api} onClose={close} />}
      {opened?.kind === "delete" && <DeleteApi api={opened.api} onClose={close} />}
    </Page>
  );
}

const columnsOf = ({
  onOpen,
  mayUpdate,
  mayDelete,
}: {
  onOpen: (opened: Opened) => void;
  /** Reason why the person may not update the API; `undefined` if the person may. */
  mayUpdate: string | undefined;
  mayDelete: string | undefined;
}): readonly Column<Row<"admin.listApis">>[] => [
  {
    id: "name",
    header: "Name",
    width: "minmax(9rem, 2fr)",
    cell: ({ apiId, name }) => (
      <Link to="/apis/$apiId" params={{ apiId }} title={name}>
        {name}
      </Link>
    ),
  },
  { id: "id", header: "Id", width: "minmax(8rem, 1fr)", fromPx: 640, cell: ({ apiId }) => <code>{apiId}</code> },
  {
    id: "keys",
    header: "Keys",
    width: "5.5rem",
    isNumber: true,
    cell: ({ keys }) => `${keys.count.toLocaleString("en")}${keys.hasMore ? "+" : ""}`,
  },
  {
    id: "state",
    header: "",
    width: "minmax(6rem, 1fr)",
    inCard: "corner",
    fromPx: 480,
    cell: (api) => <ApiBadges api={api} />,
  },
  {
    id: "created",
    header: "Created",
    width: "7.5rem",
    fromPx: 800,
    cell: ({ createdAt }) => <Time atMs={createdAt} />,
  },
  {
    id: "actions",
    header: "",
    inCard: "corner",
    width: "5rem",
    cell: (api) => (
      <Menu
        label={
          <>
            More <span className="unseen">of {api.name}</span>
          </>
        }
        items={[
          {
            label: "Rename",
            onChoose: () => onOpen({ kind: "rename", api }),
            unusable: lockedBy(api.manager) ?? mayUpdate,
          },
          {
            label: "Delete",
            isDanger: true,
            onChoose: () => onOpen({ kind: "delete", api }),
            unusable: lockedBy(api.manager) ?? mayDelete,
          },
        ]}
      />
    ),
  },
];
