import { createLazyRoute, getRouteApi, useBlocker, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { usePages } from "../../api/queries.ts";
import { Button } from "../../components/button.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { Page } from "../../components/page.tsx";
import { SearchField } from "../../components/search-field.tsx";
import { useCreate } from "../../components/use-create.ts";
import { useRequired } from "../../components/use-needs.ts";
import { withText } from "../../search-params.ts";
import { CreatePermission, CreateRole } from "./create.tsx";
import { Matrix, type MatrixPermission, type MatrixRole } from "./matrix.tsx";
import { countOf, NOTHING_PENDING, type Pending, toggled, without } from "./pending.ts";
import { PermissionDetails } from "./permission-details.tsx";
import { Review } from "./review.tsx";
import { RoleDetails } from "./role-details.tsx";

export const Route = createLazyRoute("/permissions")({ component: PermissionsPage });
const here = getRouteApi("/permissions");

/** Maximum number of role columns. It is the maximum number of roles in one API call. */
const ROLES_SHOWN = 100;

type Open =
  | { readonly kind: "role"; readonly role: MatrixRole }
  | { readonly kind: "permission"; readonly permission: MatrixPermission }
  | { readonly kind: "newRole" | "newPermission" | "review" };

const REQUIRED_TO_CHANGE = ["rbac.*.add_permission_to_role", "rbac.*.remove_permission_from_role"] as const;

function PermissionsPage(): ReactNode {
  const { search, roles: roleSearch, create } = here.useSearch();
  const navigate = useNavigate({ from: "/permissions" });
  const needs = useRequired();
  const [pending, setPending] = useState<Pending>(NOTHING_PENDING);
  const [open, setOpen] = useState<Open>();
  const toCreate = {
    role: { open: () => setOpen({ kind: "newRole" }), unusable: needs("rbac.*.create_role") },
    permission: { open: () => setOpen({ kind: "newPermission" }), unusable: needs("rbac.*.create_permission") },
  };
  useCreate(create, (what) => toCreate[what].unusable === undefined && toCreate[what].open());
  const [firstRole, setFirstRole] = useState(0);
  const allRoles = usePages("admin.listRoles", roleSearch === undefined ? {} : { search: roleSearch });
  const roles = allRoles.rows.slice(firstRole, firstRole + ROLES_SHOWN);
  const permissions = usePages(
    "admin.listPermissions",
    { roleIds: roles.map(({ id }) => id), ...(search === undefined ? {} : { search }) },
    { enabled: !allRoles.isLoading },
  );
  const pendingCount = countOf(pending);
  const blocker = useBlocker({
    // Blocks only navigation to another page. A change of the search parameters is allowed, because it keeps the pending changes.
    shouldBlockFn: ({ current, next }) => pendingCount > 0 && current.pathname !== next.pathname,
    enableBeforeUnload: () => pendingCount > 0,
    withResolver: true,
  });
  const setSearch = (name: "search" | "roles", text: string): void =>
    void navigate({ search: withText(name, text), replace: true });
  const lacking = needs(...REQUIRED_TO_CHANGE);
  const hasNext = allRoles.hasMore || allRoles.rows.length > firstRole + ROLES_SHOWN;
  return (
    <Page
      title="Roles and permissions"
      about="Permissions that each role grants. Select cells, review the changes, then save them."
      actions={
        <>
          <Button unusable={toCreate.permission.unusable} onClick={toCreate.permission.open}>
            Create a permission
          </Button>
          <Button unusable={toCreate.role.unusable} onClick={toCreate.role.open}>
            Create a role
          </Button>
          {pendingCount > 0 && <Button onClick={() => setPending(NOTHING_PENDING)}>Discard</Button>}
          <Button
            kind="main"
            unusable={lacking ?? (pendingCount === 0 ? "No changes." : undefined)}
            onClick={() => setOpen({ kind: "review" })}
          >
            {pendingCount === 0 ? "Review" : `Review ${pendingCount} ${pendingCount === 1 ? "change" : "changes"}`}
          </Button>
        </>
      }
    >
      <div className="matrix-tools">
        <SearchField label="Permission contains" value={search ?? ""} onChange={(text) => setSearch("search", text)} />
        <SearchField
          label="Role contains"
          value={roleSearch ?? ""}
          onChange={(text) => {
            setFirstRole(0);
            setSearch("roles", text);
          }}
        />
        {(firstRole > 0 || hasNext) && (
          <p className="field-row">
            <span className="muted">
              Roles {firstRole + 1} to {firstRole + roles.length}
            </span>
            <Button
              unusable={firstRole === 0 ? "This is the first page." : undefined}
              onClick={() => setFirstRole(Math.max(0, firstRole - ROLES_SHOWN))}
            >
              Before
            </Button>
            <Button
              unusable={hasNext ? undefined : "This is the last page."}
              isBusy={allRoles.isLoadingMore}
              onClick={() => {
                if (allRoles.rows.length <= firstRole + 2 * ROLES_SHOWN) allRoles.readMore();
                setFirstRole(firstRole + ROLES_SHOWN);
              }}
            >
              Next
            </Button>
          </p>
        )}
      </div>
      {allRoles.error !== null && <ErrorNote error={allRoles.error} doing="Reading the roles" again={allRoles.again} />}
      <Matrix
        roles={roles}
        permissions={permissions}
        pending={pending}
        locked={lacking}
        onToggle={(role, permission, isGranted) =>
          setPending((before) => {
            const cell = { roleId: role.id, roleName: role.name, slug: permission.slug, isGranted };
            return toggled(before, cell);
          })
        }
        onOpenRole={(role) => setOpen({ kind: "role", role })}
        onOpenPermission={(permission) => setOpen({ kind: "permission", permission })}
        empty={
          <EmptyState title={search === undefined ? "No permissions yet." : `No permission contains “${search}”.`}>
            {search === undefined ? (
              <Button unusable={toCreate.permission.unusable} onClick={toCreate.permission.open}>
                Create the first permission
              </Button>
            ) : (
              <Button onClick={() => void navigate({ search: withText("search", ""), replace: true })}>
                Clear the search
              </Button>
            )}
          </EmptyState>
        }
      />
      {open?.kind === "review" && (
        <Review
          pending={pending}
          onSaved={(roleId) => setPending((before) => without(before, roleId))}
          onClose={() => setOpen(undefined)}
        />
      )}
      {open?.kind === "role" && <RoleDetails role={open.role} onClose={() => setOpen(undefined)} />}
      {open?.kind === "permission" && (
        <PermissionDetails permission={open.permission} onClose={() => setOpen(undefined)} />
      )}
      {open?.kind === "newRole" && <CreateRole onClose={() => setOpen(undefined)} />}
      {open?.kind === "newPermission" && <CreatePermission onClose={() => setOpen(undefined)} />}
      {blocker.status === "blocked" && (
        <Dialog
          title="Leave without saving?"
          isOpen
          onClose={blocker.reset}
          actions={
            <Button kind="danger" onClick={blocker.proceed}>
              Leave
            </Button>
          }
        >
          <p>{pendingCount === 1 ? "1 change is" : `${pendingCount} changes are`} not saved.</p>
        </Dialog>
      )}
    </Page>
  );
}
