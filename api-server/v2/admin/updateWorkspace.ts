import * as z from "zod";
import { PublicError } from "../../../core/errors.ts";
import { administratorOf } from "../../domain/administration/administrator.ts";
import { changeWorkspace } from "../../domain/administration/workspaces.ts";
import { onInstallation } from "../../needed-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { findWorkspace } from "../../store/workspaces.ts";
import { QuotaPerMinute, toWorkspaceOut, WorkspaceId, WorkspaceOut } from "./workspace-schemas.ts";

const Body = z.strictObject({
  workspaceId: WorkspaceId,
  enabled: z.boolean().describe("false: its root keys get 403, and its keys verify as FORBIDDEN.").optional(),
  quotaPerMinute: QuotaPerMinute.optional(),
});
type Body = z.output<typeof Body>;

const needed = { updateWorkspace: onInstallation("update_workspace") };

export const updateWorkspace = defineProcedure({
  path: "admin.updateWorkspace",
  effect: "change",
  summary: "Enable or disable a workspace, or set its quota",
  description:
    "Members that are left out stay as they are. Who disables the workspace of the own root key is refused from the next call on; another caller, or the command line, enables it again.",
  permissions: needed,
  errors: ["workspace_not_found"],
  addition: true,
  body: Body,
  data: WorkspaceOut,
  handle,
});

async function handle(call: Call<Body, typeof needed>): Promise<WorkspaceOut> {
  const { workspaceId, enabled, quotaPerMinute } = call.body;
  call.require(needed.updateWorkspace);
  const found = await findWorkspace(call.deps.db, { workspace: workspaceId });
  if (found?.id !== workspaceId) throw new PublicError("workspace_not_found", `There is no workspace ${workspaceId}.`);
  const row = await changeWorkspace(administratorOf(call), {
    workspaceId,
    ...(enabled === undefined ? {} : { enabled }),
    ...(quotaPerMinute === undefined ? {} : { quotaPerMinute }),
  });
  return toWorkspaceOut(row);
}
