import { createLazyRoute, getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { type Row, useChange, usePages } from "../../api/queries.ts";
import { Time } from "../../components/ago.tsx";
import { Button } from "../../components/button.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { FormDialog } from "../../components/form-dialog.tsx";
import { ManagedBadge } from "../../components/managed-badge.tsx";
import { Page } from "../../components/page.tsx";
import { SearchField } from "../../components/search-field.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { TextField } from "../../components/text-field.tsx";
import { useCreate } from "../../components/use-create.ts";
import { useRequired } from "../../components/use-needs.ts";
import { usesNumber } from "../../components/uses.ts";
import { withText } from "../../search-params.ts";

export const Route = createLazyRoute("/ratelimits")({ component: NamespacesPage });
const here = getRouteApi("/ratelimits");

type Namespace = Row<"admin.listNamespaces">;

const COLUMNS: readonly Column<Namespace>[] = [
  {
    id: "name",
    header: "Name",
    width: "minmax(10rem, 2fr)",
    cell: ({ id, name }) => (
      <Link to="/ratelimits/$namespaceId" params={{ namespaceId: id }}>
        {name}
      </Link>
    ),
  },
  {
    id: "overrides",
    header: "Overrides",
    width: "6rem",
    isNumber: true,
    cell: ({ overrideCount }) => usesNumber(overrideCount),
  },
  {
    id: "manager",
    header: "Manifest",
    width: "minmax(8rem, 1fr)",
    fromPx: 600,
    cell: ({ manager }) => <ManagedBadge manager={manager} />,
  },
  { id: "id", header: "Id", width: "minmax(8rem, 1fr)", fromPx: 900, cell: ({ id }) => <code>{id}</code> },
  { id: "created", header: "Created", width: "8rem", fromPx: 700, cell: ({ createdAt }) => <Time atMs={createdAt} /> },
];

function NamespacesPage(): ReactNode {
  const { search, create } = here.useSearch();
  const navigate = useNavigate({ from: "/ratelimits" });
  const needs = useRequired();
  const [isCreating, setCreating] = useState(false);
  const lacking = needs("ratelimit.*.create_namespace");
  useCreate(create, () => setCreating(lacking === undefined));
  const pages = usePages("admin.listNamespaces", search === undefined ? {} : { search });
  const open = (namespaceId: string): void =>
    void navigate({
      to: "/ratelimits/$namespaceId",
      params: { namespaceId },
      search: ({ workspace }) => ({ ...(workspace === undefined ? {} : { workspace }) }),
    });
  return (
    <Page
      title="Rate limits"
      about="Namespaces for the limits of calls and policies, each with overrides for specific identifiers."
      actions={
        <Button kind="main" unusable={lacking} onClick={() => setCreating(true)}>
          Create a namespace
        </Button>
      }
    >
      <SearchField
        label="Name or id contains"
        value={search ?? ""}
        onChange={(text) => void navigate({ search: withText("search", text), replace: true })}
      />
      <Table
        label="Namespaces"
        one="namespace"
        columns={COLUMNS}
        pages={pages}
        rowId={({ id }) => id}
        onOpen={({ id }) => open(id)}
        doing="Reading the namespaces"
        empty={
          <EmptyState title={search === undefined ? "No namespaces yet." : `No namespace contains “${search}”.`}>
            {search === undefined ? (
              <>
                <p>A limit call or policy that names a missing namespace creates it.</p>
                <Button unusable={lacking} onClick={() => setCreating(true)}>
                  Create the first namespace
                </Button>
              </>
            ) : (
              <Button onClick={() => void navigate({ search: withText("search", ""), replace: true })}>
                Clear the search
              </Button>
            )}
          </EmptyState>
        }
      />
      {isCreating && <CreateNamespace onClose={() => setCreating(false)} onCreated={open} />}
    </Page>
  );
}

function CreateNamespace({
  onClose,
  onCreated,
}: {
  onClose: () => void;
  onCreated: (namespaceId: string) => void;
}): ReactNode {
  const [name, setName] = useState("");
  const create = useChange("ratelimit.createNamespace", { refreshes: ["admin.listNamespaces"] });
  const submit = (): void => create.mutate({ name }, { onSuccess: ({ namespaceId }) => onCreated(namespaceId) });
  return (
    <FormDialog
      title="Create a namespace"
      action="Create"
      fault={name.trim() === "" ? "Enter a name." : undefined}
      isBusy={create.isPending}
      error={create.error}
      doing="Creating the namespace"
      onSubmit={submit}
      onClose={onClose}
    >
      <TextField
        label="Name"
        name="name"
        value={name}
        onChange={setName}
        lengthMax={512}
        isRequired
        hint="Name that calls and policies use, such as email.outbound. It cannot be changed later."
      />
    </FormDialog>
  );
}
