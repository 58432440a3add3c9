import { createLazyRoute, getRouteApi, useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { type Row, usePages } from "../../api/queries.ts";
import { Time } from "../../components/ago.tsx";
import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { Page } from "../../components/page.tsx";
import { lagText, stateOf } from "../../components/policy-words.ts";
import { SearchField } from "../../components/search-field.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { withText } from "../../search-params.ts";

export const Route = createLazyRoute("/policies")({ component: PoliciesPage });
const here = getRouteApi("/policies");

type Policy = Row<"admin.listPolicies">;

/** Polling interval. It is longer than the pods' report interval because each poll reads all loaded pages of the list again. */
const POLL_INTERVAL_MS = 10_000;

const COLUMNS: readonly Column<Policy>[] = [
  { id: "name", header: "Policy", width: "minmax(10rem, 2fr)", cell: ({ name }) => name },
  {
    id: "state",
    header: "State",
    inCard: "corner",
    width: "8rem",
    cell: (policy) => {
      const { kind, word, why } = stateOf(policy.dataPlane);
      return (
        <Badge kind={kind} title={why}>
          {word}
        </Badge>
      );
    },
  },
  { id: "mode", header: "Mode", width: "5rem", fromPx: 480, cell: ({ mode }) => mode },
  {
    id: "pods",
    header: "Pods",
    width: "5rem",
    isNumber: true,
    fromPx: 560,
    cell: ({ dataPlane }) => (dataPlane === undefined ? "?" : `${dataPlane.updated} / ${dataPlane.pods}`),
  },
  {
    id: "lag",
    header: "Oldest data",
    width: "7rem",
    isNumber: true,
    fromPx: 680,
    cell: ({ dataPlane }) => (dataPlane === undefined || dataPlane.pods === 0 ? "" : lagText(dataPlane.maxStalenessMs)),
  },
  {
    id: "refused",
    header: "Rejected",
    width: "7rem",
    isNumber: true,
    fromPx: 780,
    cell: ({ dataPlane }) => (dataPlane === undefined ? "" : dataPlane.refused.toLocaleString("en")),
  },
  {
    id: "wouldRefuse",
    header: "Would reject",
    width: "7rem",
    isNumber: true,
    fromPx: 860,
    cell: ({ dataPlane, mode }) =>
      dataPlane === undefined || mode !== "Audit" ? "" : dataPlane.wouldRefuse.toLocaleString("en"),
  },
  {
    id: "generation",
    header: "Generation",
    width: "6rem",
    isNumber: true,
    fromPx: 960,
    cell: ({ generation }) => generation,
  },
  {
    id: "changed",
    header: "Changed",
    width: "7.5rem",
    fromPx: 1050,
    cell: ({ changedAt }) => <Time atMs={changedAt} />,
  },
];

function PoliciesPage(): ReactNode {
  const { search } = here.useSearch();
  const navigate = useNavigate({ from: "/policies" });
  const pages = usePages("admin.listPolicies", search === undefined ? {} : { search }, { everyMs: POLL_INTERVAL_MS });
  return (
    <Page title="Policies and pods" about="Policy version, data age and rejections of the gates of each policy.">
      <SearchField
        label="Name contains"
        value={search ?? ""}
        onChange={(text) => void navigate({ search: withText("search", text), replace: true })}
      />
      <Table
        label="Policies"
        one="policy"
        many="policies"
        columns={COLUMNS}
        pages={pages}
        rowId={({ policyId }) => policyId}
        onOpen={({ policyId }) => void navigate({ to: "/policies/$policyId", params: { policyId } })}
        doing="Reading the policies"
        empty={
          <EmptyState title={search === undefined ? "No policies yet." : `No policy name contains “${search}”.`}>
            {search === undefined ? (
              <p>Apply an ApiKeyPolicy; its gates then appear here.</p>
            ) : (
              <Button onClick={() => void navigate({ search: withText("search", ""), replace: true })}>
                Clear the search
              </Button>
            )}
          </EmptyState>
        }
      />
    </Page>
  );
}
