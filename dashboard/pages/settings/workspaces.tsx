import { createLazyRoute, getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { DEFAULT_WORKSPACE } from "../../../core/workspaces/workspace.ts";
import { usePages } from "../../api/queries.ts";
import { useMay, useWorkspace } from "../../api/session.ts";
import { Time } from "../../components/ago.tsx";
import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { Menu } from "../../components/menu.tsx";
import { Notice } from "../../components/notice.tsx";
import { Page } from "../../components/page.tsx";
import { SearchField } from "../../components/search-field.tsx";
import { StateOf } from "../../components/state-badge.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { useCreate } from "../../components/use-create.ts";
import { useRequired } from "../../components/use-needs.ts";
import { ChangeQuota } from "./change-quota.tsx";
import { DisableWorkspace, EnableWorkspace } from "./disable-workspace.tsx";
import { CreateWorkspace, RenameWorkspace } from "./name-dialogs.tsx";
import { quotaText, type Workspace } from "./workspace.ts";

export const Route = createLazyRoute("/workspaces")({ component: WorkspacesPage });
const here = getRouteApi("/workspaces");

/** The open dialog, and the workspace that it changes. */
type Opened =
  | { readonly kind: "create" }
  | { readonly kind: "rename" | "quota" | "disable" | "enable"; readonly workspace: Workspace };

const REQUIRED = "installation.*.read_workspace";

function WorkspacesPage(): ReactNode {
  const { search, create } = here.useSearch();
  const navigate = useNavigate({ from: "/workspaces" });
  const mayList = useMay()(REQUIRED);
  const needs = useRequired();
  const { workspace: shown } = useWorkspace();
  const [opened, setOpened] = useState<Opened>();
  const lacking = needs("installation.*.create_workspace");
  useCreate(create, () => lacking === undefined && setOpened({ kind: "create" }));
  const pages = usePages("admin.listWorkspaces", search === undefined ? {} : { search }, { enabled: mayList });
  const close = (): void => setOpened(undefined);
  return (
    <Page
      title="Workspaces"
      about="All workspaces of the installation. Workspaces are isolated from each other."
      actions={
        mayList && (
          <Button kind="main" unusable={lacking} onClick={() => setOpened({ kind: "create" })}>
            Create a workspace
          </Button>
        )
      }
    >
      {mayList ? (
        <>
          <SearchField
            label="Name or id contains"
            value={search ?? ""}
            onChange={(text) => void navigate({ search: text === "" ? {} : { search: text }, replace: true })}
          />
          <Table
            label="Workspaces"
            one="workspace"
            columns={columnsOf({
              shownId: shown.id,
              onOpen: setOpened,
              mayUpdate: needs("installation.*.update_workspace"),
            })}
            pages={pages}
            rowId={({ workspaceId }) => workspaceId}
            doing="Reading the workspaces"
            empty={
              <EmptyState title={`No workspace has “${search ?? ""}” in its name or id.`}>
                <Button onClick={() => void navigate({ search: {}, replace: true })}>Clear the search</Button>
              </EmptyState>
            }
          />
        </>
      ) : (
        <Notice>
          To see all workspaces of the installation, you need <code>{REQUIRED}</code>. Ask an admin of all workspaces,
          who has this permission. The menu at the top of the page has the workspaces that you may open.
        </Notice>
      )}
      {opened?.kind === "create" && <CreateWorkspace onClose={close} />}
      {opened?.kind === "rename" && <RenameWorkspace workspace={opened.workspace} onClose={close} />}
      {opened?.kind === "quota" && <ChangeQuota workspace={opened.workspace} onClose={close} />}
      {opened?.kind === "disable" && <DisableWorkspace workspace={opened.workspace} onClose={close} />}
      {opened?.kind === "enable" && <EnableWorkspace workspace={opened.workspace} onClose={close} />}
    </Page>
  );
}

const columnsOf = ({
  shownId,
  onOpen,
  mayUpdate,
}: {
  /** Id of the workspace that the page shows. */
  shownId: string;
  onOpen: (opened: Opened) => void;
  /** Reason why the person may not change the workspace; `undefined` if the person may. */
  mayUpdate: string | undefined;
}): readonly Column<Workspace>[] => [
  {
    id: "name",
    header: "Name",
    width: "minmax(8rem, 2fr)",
    // A disabled workspace cannot be opened.
    cell: ({ workspaceId, name, enabled }) =>
      enabled ? (
        <Link to="/settings" search={{ workspace: workspaceId }} title={name}>
          <bdi>{name}</bdi>
        </Link>
      ) : (
        <bdi title={name}>{name}</bdi>
      ),
  },
  {
    id: "id",
    header: "Id",
    width: "minmax(8rem, 1fr)",
    fromPx: 640,
    cell: ({ workspaceId }) => <code>{workspaceId}</code>,
  },
  {
    id: "state",
    header: "State",
    inCard: "corner",
    width: "minmax(5.5rem, 1fr)",
    cell: ({ workspaceId, enabled }) => (
      <>
        <StateOf state={enabled ? "enabled" : "disabled"} />{" "}
        {workspaceId === shownId && <Badge title="The workspace that this page shows.">current</Badge>}
      </>
    ),
  },
  {
    id: "quota",
    header: "Quota",
    width: "9rem",
    fromPx: 560,
    cell: ({ quotaPerMinute }) => quotaText(quotaPerMinute),
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
    cell: (workspace) => (
      <Menu
        label={
          <>
            More <span className="unseen">of {workspace.name}</span>
          </>
        }
        items={[
          {
            label: "Rename",
            onChoose: () => onOpen({ kind: "rename", workspace }),
            unusable:
              mayUpdate ??
              (workspace.name === DEFAULT_WORKSPACE
                ? "The default workspace cannot be renamed, because servers find it by its name at startup."
                : undefined),
          },
          {
            label: "Change the quota",
            onChoose: () => onOpen({ kind: "quota", workspace }),
            unusable: mayUpdate,
          },
          workspace.enabled
            ? {
                label: "Disable",
                isDanger: true,
                onChoose: () => onOpen({ kind: "disable", workspace }),
                unusable: mayUpdate,
              }
            : { label: "Enable", onChoose: () => onOpen({ kind: "enable", workspace }), unusable: mayUpdate },
        ]}
      />
    ),
  },
];
