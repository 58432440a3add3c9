import type { ReactNode } from "react";
import type { Data } from "../../../core/api/procedures.ts";
import type { Pages } from "../../api/queries.ts";
import { Ago } from "../../components/ago.tsx";
import { Badge } from "../../components/badge.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { lagText } from "../../components/policy-words.ts";
import { type Column, Table } from "../../components/table.tsx";

type Policy = Data<"admin.getPolicy">;
type Pod = Policy["podList"][number];

const STATES = { updated: "good", behind: "warn", unsupported: "bad", silent: "bad" } as const;
const FRESHNESS = { Fresh: "fresh", Stale: "stale, served", Expired: "stale, denied" } as const;

const COLUMNS: readonly Column<Pod>[] = [
  { id: "pod", header: "Pod", width: "minmax(9rem, 2fr)", cell: ({ podId }) => podId },
  {
    id: "state",
    header: "State",
    inCard: "corner",
    width: "6rem",
    cell: ({ state, reason }) => (
      <Badge kind={STATES[state]} title={reason}>
        {state}
      </Badge>
    ),
  },
  { id: "version", header: "Version", width: "5rem", isNumber: true, fromPx: 420, cell: ({ version }) => version },
  {
    id: "lag",
    header: "Data",
    width: "7rem",
    isNumber: true,
    fromPx: 520,
    cell: ({ stalenessMs }) => lagText(stalenessMs),
  },
  { id: "fresh", header: "onStale", width: "8rem", fromPx: 640, cell: ({ freshness }) => FRESHNESS[freshness] },
  { id: "seen", header: "Reported", width: "7rem", fromPx: 760, cell: ({ lastSeenAt }) => <Ago atMs={lastSeenAt} /> },
  { id: "region", header: "Region", width: "6rem", fromPx: 880, cell: ({ region }) => region ?? "" },
  { id: "release", header: "Release", width: "6rem", fromPx: 960, cell: ({ release }) => release ?? "unknown" },
  {
    id: "refused",
    header: "Rejected",
    width: "6rem",
    isNumber: true,
    fromPx: 1040,
    cell: ({ refused }) => refused.toLocaleString("en"),
  },
];

/** Table of a policy's pods. The response for the policy contains at most 1,000 pods, so the table needs no paging. */
export function PodsTable({ policy }: { policy: Policy }): ReactNode {
  const pages: Pages<Pod> = {
    rows: policy.podList,
    isLoading: false,
    isLoadingMore: false,
    hasMore: false,
    error: null,
    readAtMs: policy.now,
    readMore: () => undefined,
    again: () => undefined,
  };
  const { pods = 0, silent = 0 } = policy.dataPlane ?? {};
  const more = pods + silent - policy.podList.length;
  return (
    <>
      <div className="pods">
        <Table
          label="Pods"
          one="pod"
          columns={COLUMNS}
          pages={pages}
          rowId={({ podId }) => podId}
          doing="Reading the pods"
          empty={
            <EmptyState title="No gate has reported in the last 15 seconds.">
              <p>Start a pod that the selector of the policy matches.</p>
            </EmptyState>
          }
        />
      </div>
      {more > 0 && <p className="muted">{more} more are not listed.</p>}
    </>
  );
}
