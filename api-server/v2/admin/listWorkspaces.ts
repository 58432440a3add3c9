import * as z from "zod";
import { pageWorkspaces } from "../../db/workspaces.ts";
import { onInstallation } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineListProcedure, type Page } from "../../procedure.ts";
import { Cursor, PageLimit, Search } from "../schemas.ts";
import { toWorkspaceOut, WorkspaceOut } from "./workspace-schemas.ts";

const Body = z.strictObject({
  limit: PageLimit,
  cursor: Cursor.max(1024).optional(),
  search: Search.describe("Search text: matches if the id or name contains it, ignoring case.")
    .meta({ examples: ["shop"] })
    .optional(),
});
type Body = z.output<typeof Body>;

const required = { readWorkspace: onInstallation("read_workspace") };

export const listWorkspaces = defineListProcedure({
  path: "admin.listWorkspaces",
  effect: "read",
  summary: "List the workspaces",
  description: "Lists all workspaces of the installation, including disabled ones, in the order of their ids.",
  permissions: required,
  errors: [],
  addition: true,
  body: Body,
  item: WorkspaceOut,
  paginated: true,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Page<WorkspaceOut>> {
  const { limit, cursor = "", search = "" } = call.body;
  call.require(required.readWorkspace);
  // Reads one extra row. If it exists, there is a next page, which starts with this row.
  const rows = await pageWorkspaces(call.deps.db, { cursor, search: search.trim(), rowsMax: limit + 1 });
  return { items: rows.slice(0, limit).map(toWorkspaceOut), cursor: rows[limit]?.id };
}
