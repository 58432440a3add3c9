import * as z from "zod";
import { countRolesThatFit } from "../../db/permissions.ts";
import { listRoles as listRoleRows, searchRoles } from "../../db/roles.ts";
import { PAGE_BYTES_MAX, readPage } from "../../domain/lists/pages.ts";
import { onRbac } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineListProcedure, type Page } from "../../procedure.ts";
import { PageLimit, Search } from "../schemas.ts";
import { describeRoles, RoleOut, ShortCursor } from "./schemas.ts";

const Body = z.strictObject({
  limit: PageLimit,
  cursor: ShortCursor.optional(),
  search: Search.describe("Search text: matches if the id, name or description contains it, ignoring case.").optional(),
});
type Body = z.output<typeof Body>;

const required = { readRole: onRbac("read_role") };

export const listRoles = defineListProcedure({
  path: "permissions.listRoles",
  effect: "read",
  summary: "List the roles",
  description:
    "Lists roles in the order of their ids, each with its permissions. A page ends early if its roles would exceed 4 MiB in total.",
  permissions: required,
  errors: [],
  body: Body,
  item: RoleOut,
  paginated: true,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Page<RoleOut>> {
  const { body, caller, deps } = call;
  const { limit, cursor = "", search } = body;
  const { workspaceId } = caller;
  call.require(required.readRole);
  // Reads one extra row. If it exists, there is a next page, which starts with this row.
  const page = { workspaceId, cursor, rowsMax: limit + 1 };
  const rows = await readPage(call, search, {
    all: (db) => listRoleRows(db, page),
    fitting: (db, part) => searchRoles(db, { ...page, search: part }),
  });
  const roleIds = rows.slice(0, limit).map(({ id }) => id);
  const fitting = await countRolesThatFit(deps.db, { workspaceId, roleIds, bytesMax: PAGE_BYTES_MAX });
  const shown = Math.min(Math.max(fitting, 1), limit);
  return { items: await describeRoles(deps.db, workspaceId, rows.slice(0, shown)), cursor: rows[shown]?.id };
}
