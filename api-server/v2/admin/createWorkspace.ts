import * as z from "zod";
import { administratorOf } from "../../domain/administration/administrator.ts";
import { createWorkspace as create } from "../../domain/administration/workspaces.ts";
import { onInstallation } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import {
  QuotaPerMinute,
  toWorkspaceOut,
  WorkspaceName,
  WorkspaceOut,
  workspaceAlreadyExists,
} from "./workspace-schemas.ts";

const Body = z.strictObject({
  name: WorkspaceName,
  quotaPerMinute: QuotaPerMinute.optional(),
});
type Body = z.output<typeof Body>;

const required = { createWorkspace: onInstallation("create_workspace") };

export const createWorkspace = defineProcedure({
  path: "admin.createWorkspace",
  effect: "change",
  summary: "Create a workspace",
  description:
    "Workspaces are completely separate from each other. To create the first root key of a workspace, use the dashboard as an admin of all workspaces, or the command line.",
  permissions: required,
  errors: ["workspace_already_exists"],
  addition: true,
  body: Body,
  data: WorkspaceOut,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<WorkspaceOut> {
  const { name, quotaPerMinute = null } = call.body;
  call.require(required.createWorkspace);
  const row = await create(administratorOf(call), { name, quotaPerMinute });
  if (row === undefined) throw workspaceAlreadyExists(name);
  return toWorkspaceOut(row);
}
