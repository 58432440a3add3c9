import * as z from "zod";
import { listMatrixRows, type MatrixRow } from "../../db/permission-matrix.ts";
import { readBriefly } from "../../domain/lists/pages.ts";
import { onRbac } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineListProcedure, type Page } from "../../procedure.ts";
import { PermissionOut } from "../permissions/schemas.ts";
import { LongLimit } from "../schemas.ts";
import { ListSearch, ManagerOut, NameCursor, usesOut } from "./access-schemas.ts";

/**
 * Maximum number of roles in a request. Each role is a column of the dashboard's matrix, so a page of 500 permissions has at most 50,000
 * cells.
 */
const ROLES_MAX = 100;

const Body = z.strictObject({
  roleIds: z
    .array(
      z
        .string()
        .min(1)
        .max(255)
        .meta({ examples: ["role_5kLn7Pq9Rs2Tu4Vw"] }),
    )
    .max(ROLES_MAX)
    .default([])
    .describe("Ids of roles. The response states which permissions these roles grant."),
  search: ListSearch.describe("Search text: matches if the id, name, slug or description contains it, ignoring case."),
  limit: LongLimit,
  cursor: NameCursor.optional(),
});
type Body = z.output<typeof Body>;

const ListedPermission = PermissionOut.extend({
  manager: ManagerOut,
  roleCount: z
    .int()
    .describe("Number of roles that grant the permission.")
    .meta({ examples: [3] }),
  keyCount: usesOut("Number of live keys that hold the permission directly"),
  granted: z
    .array(z.int().meta({ examples: [0] }))
    .describe("Roles that grant the permission, as indexes into `roleIds`."),
});
type ListedPermission = z.input<typeof ListedPermission>;

const required = { readPermission: onRbac("read_permission"), readRole: onRbac("read_role", "with `roleIds`") };

export const listPermissions = defineListProcedure({
  path: "admin.listPermissions",
  effect: "read",
  summary: "List the permissions with their roles and keys",
  description:
    "Lists permissions in the order of their slugs. For each, states which of the given roles grant it, as a row of a matrix.",
  permissions: required,
  errors: ["request_timeout"],
  addition: true,
  body: Body,
  item: ListedPermission,
  paginated: true,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Page<ListedPermission>> {
  const { body, caller, deps } = call;
  const { limit, cursor = "", search = "", roleIds } = body;
  call.require(required.readPermission);
  if (roleIds.length > 0) call.require(required.readRole);
  const { workspaceId } = caller;
  // Reads one extra row. If it exists, there is a next page, which starts with this row.
  const requested = { workspaceId, cursor, search: search.trim(), rowsMax: limit + 1, roleIds };
  const rows = await readBriefly(deps, "Searching for a longer text is often faster.", (db) =>
    listMatrixRows(db, requested),
  );
  return { items: rows.slice(0, limit).map(toListedPermission), cursor: rows[limit]?.slug };
}

const toListedPermission = ({ description, manager, roles, keys, ...row }: MatrixRow): ListedPermission => ({
  id: row.id,
  name: row.name,
  slug: row.slug,
  ...(description === null ? {} : { description }),
  ...(manager === null ? {} : { manager }),
  roleCount: roles,
  keyCount: keys,
  granted: row.granted,
});
