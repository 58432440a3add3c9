import * as z from "zod";
import { listUsedRoles, type UsedRoleRow } from "../../db/permission-matrix.ts";
import { readBriefly } from "../../domain/lists/pages.ts";
import { onRbac } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineListProcedure, type Page } from "../../procedure.ts";
import { RoleOut } from "../permissions/schemas.ts";
import { LongLimit } from "../schemas.ts";
import { ListSearch, ManagerOut, NameCursor, usesOut } from "./access-schemas.ts";

const Body = z.strictObject({
  search: ListSearch.describe("Search text: matches if the id, name or description contains it, ignoring case."),
  limit: LongLimit,
  cursor: NameCursor.optional(),
});
type Body = z.output<typeof Body>;

const ListedRole = RoleOut.omit({ permissions: true }).extend({
  manager: ManagerOut,
  permissionCount: z
    .int()
    .describe("Number of permissions that the role grants.")
    .meta({ examples: [4] }),
  keyCount: usesOut("How many live keys have it"),
});
type ListedRole = z.input<typeof ListedRole>;

const required = { readRole: onRbac("read_role") };

export const listRoles = defineListProcedure({
  path: "admin.listRoles",
  effect: "read",
  summary: "List the roles with their permissions and keys",
  description: "Lists roles in the order of their names. `permissions.getRole` returns the permissions of a role.",
  permissions: required,
  errors: ["request_timeout"],
  addition: true,
  body: Body,
  item: ListedRole,
  paginated: true,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Page<ListedRole>> {
  const { body, caller, deps } = call;
  const { limit, cursor = "", search = "" } = body;
  call.require(required.readRole);
  const { workspaceId } = caller;
  // Reads one extra row. If it exists, there is a next page, which starts with this row.
  const requested = { workspaceId, cursor, search: search.trim(), rowsMax: limit + 1 };
  const rows = await readBriefly(deps, "Searching for a longer text is often faster.", (db) =>
    listUsedRoles(db, requested),
  );
  return { items: rows.slice(0, limit).map(toListedRole), cursor: rows[limit]?.name };
}

const toListedRole = ({ id, name, description, manager, permissions, keys }: UsedRoleRow): ListedRole => ({
  id,
  name,
  ...(description === null ? {} : { description }),
  ...(manager === null ? {} : { manager }),
  permissionCount: permissions,
  keyCount: keys,
});
