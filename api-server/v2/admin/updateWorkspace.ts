import * as z from "zod";
import { PublicError } from "../../../core/errors.ts";
import { DEFAULT_WORKSPACE } from "../../../core/workspaces/workspace.ts";
import { isUniqueViolation } from "../../../postgres/failures.ts";
import type { Queryable } from "../../../postgres/queryable.ts";
import { findWorkspace, isOtherWorkspaceOpen, type WorkspaceRow } from "../../db/workspaces.ts";
import { administratorOf } from "../../domain/administration/administrator.ts";
import { changeWorkspace, type WorkspaceChange } from "../../domain/administration/workspaces.ts";
import { onInstallation } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import {
  QuotaPerMinute,
  toWorkspaceOut,
  WorkspaceId,
  WorkspaceName,
  WorkspaceOut,
  workspaceAlreadyExists,
} from "./workspace-schemas.ts";

const Body = z.strictObject({
  workspaceId: WorkspaceId,
  name: WorkspaceName.optional(),
  enabled: z
    .boolean()
    .describe(
      "Whether the workspace is enabled. Root keys of a disabled workspace get 403, and verifying its keys returns FORBIDDEN.",
    )
    .optional(),
  quotaPerMinute: QuotaPerMinute.optional(),
});
type Body = z.output<typeof Body>;

const required = { updateWorkspace: onInstallation("update_workspace") };

export const updateWorkspace = defineProcedure({
  path: "admin.updateWorkspace",
  effect: "change",
  summary: "Rename a workspace, enable or disable it, or set its quota",
  description:
    "Omitted members remain unchanged. References to the former name of a workspace, in roles files and command options, no longer work. Callers who disable their own workspace are rejected from the next call; another caller, or the command line, can enable it again. The last workspace that serves requests can be neither disabled nor given the quota 0.",
  permissions: required,
  errors: ["workspace_not_found", "workspace_already_exists", "workspace_name_reserved", "last_enabled_workspace"],
  addition: true,
  body: Body,
  data: WorkspaceOut,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<WorkspaceOut> {
  const { workspaceId, ...change } = call.body;
  call.require(required.updateWorkspace);
  const found = await findWorkspace(call.deps.db, { workspace: workspaceId });
  if (found?.id !== workspaceId) throw new PublicError("workspace_not_found", `There is no workspace ${workspaceId}.`);
  try {
    return toWorkspaceOut(await changeWorkspace(administratorOf(call), { workspaceId, ...given(change) }, mayChange));
  } catch (error) {
    if (!isUniqueViolation(error, "workspaces_name_key")) throw error;
    throw workspaceAlreadyExists(change.name ?? found.name);
  }
}

const given = ({ name, enabled, quotaPerMinute }: Omit<Body, "workspaceId">): WorkspaceChange => ({
  ...(name === undefined ? {} : { name }),
  ...(enabled === undefined ? {} : { enabled }),
  ...(quotaPerMinute === undefined ? {} : { quotaPerMinute }),
});

/** Returns whether the workspace serves requests. */
const isOpen = ({ enabled, quota_per_minute: quota }: WorkspaceRow): boolean => enabled && quota !== 0;

/**
 * Throws PublicError 409 for the last enabled workspace. The command line can disable this workspace, because it can also enable it again
 * without the API.
 */
async function mayChange(tx: Queryable, before: WorkspaceRow, after: WorkspaceRow): Promise<void> {
  if (before.name === DEFAULT_WORKSPACE && after.name !== before.name) {
    throw new PublicError("workspace_name_reserved", `The workspace ${DEFAULT_WORKSPACE} cannot be renamed.`);
  }
  if (isOpen(before) && !isOpen(after) && !(await isOtherWorkspaceOpen(tx, { workspaceId: before.id }))) {
    throw new PublicError(
      "last_enabled_workspace",
      `The workspace ${before.name} is the last enabled workspace with a quota above 0: without it, the API could not be called to undo the change.`,
    );
  }
}
