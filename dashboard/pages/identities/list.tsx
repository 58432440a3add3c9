import { createLazyRoute, getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import type { Schema } from "../../../core/api/procedures.ts";
import { usePages } from "../../api/queries.ts";
import { Button } from "../../components/button.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { Page } from "../../components/page.tsx";
import { SearchField } from "../../components/search-field.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { useCreate } from "../../components/use-create.ts";
import { useRequired } from "../../components/use-needs.ts";
import { withText } from "../../search-params.ts";
import { CreateIdentity } from "./create.tsx";

export const Route = createLazyRoute("/identities")({ component: IdentitiesPage });
const here = getRouteApi("/identities");

type Identity = Schema<"Identity">;

const COLUMNS: readonly Column<Identity>[] = [
  {
    id: "externalId",
    header: "External id",
    width: "minmax(10rem, 2fr)",
    cell: ({ id, externalId }) => (
      <Link to="/identities/$identityId" params={{ identityId: id }}>
        {externalId}
      </Link>
    ),
  },
  { id: "id", header: "Id", width: "minmax(8rem, 1fr)", fromPx: 700, cell: ({ id }) => <code>{id}</code> },
  {
    id: "limits",
    header: "Limits",
    width: "5rem",
    isNumber: true,
    cell: ({ ratelimits }) => ratelimits?.length ?? 0,
  },
];

function IdentitiesPage(): ReactNode {
  const { search, create } = here.useSearch();
  const navigate = useNavigate({ from: "/identities" });
  const needs = useRequired();
  const [isCreating, setCreating] = useState(false);
  const lacking = needs("identity.*.create_identity");
  useCreate(create, () => setCreating(lacking === undefined));
  const pages = usePages("identities.listIdentities", search === undefined ? {} : { search });
  const open = (identityId: string): void =>
    void navigate({ to: "/identities/$identityId", params: { identityId }, search: {} });
  return (
    <Page
      title="Identities"
      about="Owners of keys. All keys of an identity share its limits."
      actions={
        <Button kind="main" unusable={lacking} onClick={() => setCreating(true)}>
          Create an identity
        </Button>
      }
    >
      <SearchField
        label="External id or id contains"
        value={search ?? ""}
        onChange={(text) => void navigate({ search: withText("search", text), replace: true })}
      />
      <Table
        label="Identities"
        one="identity"
        many="identities"
        columns={COLUMNS}
        pages={pages}
        rowId={({ id }) => id}
        onOpen={({ id }) => open(id)}
        doing="Reading the identities"
        empty={
          <EmptyState title={search === undefined ? "No identities yet." : `No identity contains “${search}”.`}>
            {search === undefined ? (
              <Button unusable={lacking} onClick={() => setCreating(true)}>
                Create the first identity
              </Button>
            ) : (
              <Button onClick={() => void navigate({ search: withText("search", ""), replace: true })}>
                Clear the search
              </Button>
            )}
          </EmptyState>
        }
      />
      {isCreating && <CreateIdentity onClose={() => setCreating(false)} onCreated={open} />}
    </Page>
  );
}
