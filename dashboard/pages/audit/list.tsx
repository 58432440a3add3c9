import { createLazyRoute, getRouteApi, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import { type Row, usePages } from "../../api/queries.ts";
import { Time } from "../../components/ago.tsx";
import { Button } from "../../components/button.tsx";
import { Drawer } from "../../components/drawer.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { FilterMenu } from "../../components/filter-menu.tsx";
import { Page } from "../../components/page.tsx";
import { SearchField } from "../../components/search-field.tsx";
import { Select } from "../../components/select.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { chipOf } from "../../components/usage-selects.tsx";
import "../../components/plain-table.css";
import { withTexts } from "../../search-params.ts";
import { ChangeDetails, whoText } from "./details.tsx";
import { type AuditSearch, EVENTS, RANGES, type RangeName } from "./search.ts";

export const Route = createLazyRoute("/audit")({ component: AuditPage });
const here = getRouteApi("/audit");

type Change = Row<"admin.listAudit">;

const NO_FILTERS = { event: "", range: "", targetId: "", actorId: "", requestId: "" };

const COLUMNS: readonly Column<Change>[] = [
  { id: "time", header: "When", width: "7.5rem", inCard: "corner", cell: ({ time }) => <Time atMs={time} /> },
  {
    id: "event",
    header: "Event",
    width: "minmax(9rem, 1fr)",
    inCard: "title",
    cell: ({ event }) => <code>{event}</code>,
  },
  { id: "actor", header: "Who", width: "minmax(7rem, 1fr)", fromPx: 520, cell: ({ actor }) => whoText(actor) },
  { id: "what", header: "What", width: "minmax(10rem, 3fr)", fromPx: 760, cell: ({ description }) => description },
  {
    id: "changed",
    header: "Changed",
    width: "minmax(6rem, 1fr)",
    fromPx: 1000,
    cell: ({ after }) => (after === undefined ? "" : Object.keys(after).join(", ")),
  },
];

const RANGE_WORDS: Readonly<Record<RangeName, string>> = {
  "1h": "Last hour",
  "24h": "Last 24 hours",
  "7d": "Last 7 days",
  "30d": "Last 30 days",
};

/** Returns the start of the range, rounded to a minute, so that a refresh within a minute requests the same list. */
const sinceOf = (range: RangeName | undefined, nowMs: number): number | undefined =>
  range === undefined ? undefined : Math.floor((nowMs - RANGES[range]) / 60_000) * 60_000;

function AuditPage(): ReactNode {
  const { row: openId, range, ...filters } = here.useSearch();
  const navigate = useNavigate({ from: "/audit" });
  const since = useMemo(() => sinceOf(range, Date.now()), [range]);
  const { event, actorId, targetId, requestId } = filters;
  const wanted = {
    ...(event === undefined ? {} : { event }),
    ...(actorId === undefined ? {} : { actorId }),
    ...(targetId === undefined ? {} : { targetId }),
    ...(requestId === undefined ? {} : { requestId }),
    ...(since === undefined ? {} : { since }),
  };
  const pages = usePages("admin.listAudit", wanted);
  const set = (change: Partial<Record<keyof AuditSearch, string>>): void =>
    void navigate({ search: withTexts(change), replace: true });
  const open = pages.rows.find(({ id }) => id === openId);
  const isFiltered = Object.keys(wanted).length > 0;
  return (
    <Page
      title="Audit log"
      about="All changes, with the actor and the time. Each entry is written in the transaction of its change."
    >
      <FilterMenu
        chips={[
          ...chipOf("Event", event, () => set({ event: "" })),
          ...chipOf("Time", range && RANGE_WORDS[range], () => set({ range: "" })),
          ...chipOf("Object id", targetId, () => set({ targetId: "" })),
          ...chipOf("Actor id", actorId, () => set({ actorId: "" })),
          ...chipOf("Request id", requestId, () => set({ requestId: "" })),
        ]}
      >
        <Select
          label="Event"
          value={event ?? ""}
          options={[{ value: "", label: "All events" }, ...EVENTS.map((value) => ({ value, label: value }))]}
          onChange={(value) => set({ event: value })}
        />
        <Select
          label="Time"
          value={range ?? ""}
          options={[
            { value: "", label: "All retained" },
            ...Object.entries(RANGE_WORDS).map(([value, label]) => ({ value, label })),
          ]}
          onChange={(value) => set({ range: value })}
        />
        <SearchField label="Object id" value={targetId ?? ""} onChange={(text) => set({ targetId: text.trim() })} />
        <SearchField label="Actor id" value={actorId ?? ""} onChange={(text) => set({ actorId: text.trim() })} />
        <SearchField label="Request id" value={requestId ?? ""} onChange={(text) => set({ requestId: text.trim() })} />
      </FilterMenu>
      <Table
        label="Changes"
        one="change"
        columns={COLUMNS}
        pages={pages}
        rowId={({ id }) => id}
        onOpen={({ id }) => set({ row: id })}
        openId={openId}
        doing="Reading the audit log"
        empty={
          <EmptyState title={isFiltered ? "No entries match these filters." : "No changes yet."}>
            {isFiltered ? (
              <Button onClick={() => set(NO_FILTERS)}>Remove the filters</Button>
            ) : (
              <p>Each change of an object, and each sign-in, appears here.</p>
            )}
          </EmptyState>
        }
      />
      <Drawer title={open?.event ?? "Change"} isOpen={open !== undefined} onClose={() => set({ row: "" })}>
        {open !== undefined && <ChangeDetails change={open} />}
      </Drawer>
    </Page>
  );
}
