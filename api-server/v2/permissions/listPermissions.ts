import * as z from "zod";
import { listPermissions as listPermissionRows, searchPermissions } from "../../db/permissions.ts";
import { readPage } from "../../domain/lists/pages.ts";
import { onRbac } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineListProcedure, type Page } from "../../procedure.ts";
import { PageLimit, Search } from "../schemas.ts";
import { PermissionOut, ShortCursor, toPermissionOut } from "./schemas.ts";

const Body = z.strictObject({
  limit: PageLimit,
  cursor: ShortCursor.optional(),
  search: Search.describe(
    "Search text: matches if the id, name, slug or description contains it, ignoring case.",
  ).optional(),
});
type Body = z.output<typeof Body>;

const required = { readPermission: onRbac("read_permission") };

export const listPermissions = defineListProcedure({
  path: "permissions.listPermissions",
  effect: "read",
  summary: "List all permissions",
  description: "Lists permissions in the order of their ids.",
  permissions: required,
  errors: [],
  body: Body,
  item: PermissionOut,
  paginated: true,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Page<PermissionOut>> {
  const { limit, cursor = "", search } = call.body;
  call.require(required.readPermission);
  // Reads one extra row. If it exists, there is a next page, which starts with this row.
  const page = { workspaceId: call.caller.workspaceId, cursor, rowsMax: limit + 1 };
  const rows = await readPage(call, search, {
    all: (db) => listPermissionRows(db, page),
    fitting: (db, part) => searchPermissions(db, { ...page, search: part }),
  });
  return { items: rows.slice(0, limit).map(toPermissionOut), cursor: rows[limit]?.id };
}
