import { createLazyRoute, getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import type { StoredNamespace } from "../../../core/manifests/from-store/stored-object.ts";
import { parseManager } from "../../../core/manifests/manager.ts";
import { useChange, usePages, useRead } from "../../api/queries.ts";
import { useMay } from "../../api/session.ts";
import { Time } from "../../components/ago.tsx";
import { Button } from "../../components/button.tsx";
import { ConfirmDialog } from "../../components/confirm-dialog.tsx";
import { formatDuration } from "../../components/duration.ts";
import { EmptyState } from "../../components/empty-state.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { ManagedBadge, ManagedNotice } from "../../components/managed-badge.tsx";
import { Page } from "../../components/page.tsx";
import { SearchField } from "../../components/search-field.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { useDone } from "../../components/toast.tsx";
import { useRequired } from "../../components/use-needs.ts";
import { YamlButton } from "../../components/yaml-view.tsx";
import { withText } from "../../search-params.ts";
import { type Override, OverrideDialog } from "./override.tsx";
import { Tester } from "./tester.tsx";
import { NamespaceUsage } from "./usage.tsx";

export const Route = createLazyRoute("/ratelimits/$namespaceId")({ component: NamespacePage });
const here = getRouteApi("/ratelimits/$namespaceId");

const COLUMNS: readonly Column<Override>[] = [
  {
    id: "identifier",
    header: "Identifier",
    width: "minmax(10rem, 2fr)",
    cell: ({ identifier }) => <code>{identifier}</code>,
  },
  { id: "limit", header: "Limit", width: "7rem", isNumber: true, cell: ({ limit }) => limit.toLocaleString("en") },
  { id: "duration", header: "Window", width: "6rem", isNumber: true, cell: ({ duration }) => formatDuration(duration) },
  {
    id: "kind",
    header: "Applies to",
    width: "8.5rem",
    fromPx: 700,
    cell: ({ identifier }) => (identifier.includes("*") ? "a pattern" : "exact identifier"),
  },
  {
    id: "manager",
    header: "Manifest",
    width: "minmax(8rem, 1fr)",
    fromPx: 600,
    cell: ({ manager }) => <ManagedBadge manager={manager} />,
  },
  {
    id: "set",
    header: "Set",
    width: "8rem",
    fromPx: 900,
    cell: ({ createdAt, updatedAt }) => <Time atMs={updatedAt ?? createdAt} />,
  },
];

function NamespacePage(): ReactNode {
  const { namespaceId } = here.useParams();
  const { search, range = "24h" } = here.useSearch();
  const navigate = useNavigate({ from: "/ratelimits/$namespaceId" });
  const needs = useRequired();
  const may = useMay();
  const namespace = useRead("ratelimit.getNamespace", { namespace: namespaceId });
  const managed = useRead("managed.getObject", { kind: "namespace", id: namespaceId });
  const pages = usePages("admin.listOverrides", {
    namespace: namespaceId,
    ...(search === undefined ? {} : { search }),
  });
  const [open, setOpen] = useState<Override | "new">();
  const [isDeleting, setDeleting] = useState(false);
  const name = namespace.data?.name;
  const manager = managed.data?.manager;
  const stored: StoredNamespace | undefined =
    name === undefined
      ? undefined
      : { kind: "RatelimitNamespace", name, manager: manager === undefined ? undefined : parseManager(manager) };
  return (
    <Page
      title={name ?? "Namespace"}
      about={
        <>
          Rate-limit namespace <code>{namespaceId}</code>
          {" · "}
          <Link to="/requests" search={{ of: "ratelimits", namespace: namespaceId, range: "7d" }}>
            Requests
          </Link>
          {" · "}
          <Link to="/audit" search={{ targetId: namespaceId }}>
            Audit log
          </Link>
        </>
      }
      actions={
        stored !== undefined && (
          <>
            <YamlButton object={stored} />
            <Button
              kind="danger"
              unusable={
                manager === undefined
                  ? needs("ratelimit.*.delete_namespace")
                  : "A manifest manages this namespace: delete the manifest."
              }
              onClick={() => setDeleting(true)}
            >
              Delete
            </Button>
            <Button kind="main" unusable={needs("ratelimit.*.set_override")} onClick={() => setOpen("new")}>
              Set an override
            </Button>
          </>
        )
      }
    >
      {namespace.error !== null && (
        <ErrorNote error={namespace.error} doing="Reading the namespace" again={() => void namespace.refetch()} />
      )}
      {manager !== undefined && <ManagedNotice manager={manager} />}
      {name !== undefined && may("ratelimit.*.read_analytics") && (
        <NamespaceUsage
          namespaceId={namespaceId}
          range={range}
          onRange={(next) => void navigate({ search: (before) => ({ ...before, range: next }), replace: true })}
        />
      )}
      <Tester namespaceId={namespaceId} />
      <h2>Overrides</h2>
      <SearchField
        label="Identifier or pattern contains"
        value={search ?? ""}
        onChange={(text) => void navigate({ search: withText("search", text), replace: true })}
      />
      <Table
        label="Overrides"
        one="override"
        columns={COLUMNS}
        pages={pages}
        rowId={({ overrideId }) => overrideId}
        onOpen={setOpen}
        openId={typeof open === "object" ? open.overrideId : undefined}
        doing="Reading the overrides"
        empty={
          <EmptyState title={search === undefined ? "No overrides." : `No override contains “${search}”.`}>
            {search === undefined ? (
              <>
                <p>Every identifier has the limit that calls and policies specify.</p>
                <Button unusable={needs("ratelimit.*.set_override")} onClick={() => setOpen("new")}>
                  Set the first override
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
      {open !== undefined && stored !== undefined && (
        <OverrideDialog
          key={open === "new" ? "new" : open.overrideId}
          override={open === "new" ? undefined : open}
          namespace={{ id: namespaceId, stored }}
          onClose={() => setOpen(undefined)}
        />
      )}
      {isDeleting && name !== undefined && (
        <DeleteNamespace
          namespaceId={namespaceId}
          name={name}
          onClose={() => setDeleting(false)}
          onDeleted={() => void navigate({ to: "/ratelimits", search: ({ search: _, range: __, ...rest }) => rest })}
        />
      )}
    </Page>
  );
}

function DeleteNamespace({
  namespaceId,
  name,
  onClose,
  onDeleted,
}: {
  namespaceId: string;
  name: string;
  onClose: () => void;
  onDeleted: () => void;
}): ReactNode {
  const done = useDone(onDeleted);
  const remove = useChange("ratelimit.deleteNamespace", { refreshes: ["admin.listNamespaces"] });
  return (
    <ConfirmDialog
      title={`Delete ${name}`}
      action="Delete the namespace"
      onClose={onClose}
      typed={name}
      isBusy={remove.isPending}
      error={remove.error}
      onConfirm={() =>
        remove.mutate(
          { namespace: namespaceId },
          {
            onSuccess: () => done(`Namespace ${name} deleted.`),
          },
        )
      }
    >
      <p>This also deletes its overrides. Limit calls that name it are rejected until it is created again.</p>
    </ConfirmDialog>
  );
}
