import * as z from "zod";
import { listNamespacesByName } from "../../db/namespace-list.ts";
import { readBriefly } from "../../domain/lists/pages.ts";
import { onNamespaces } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineListProcedure, type Page } from "../../procedure.ts";
import { NamespaceOut, toNamespaceOut } from "../ratelimit/schemas.ts";
import { LongLimit } from "../schemas.ts";
import { ListSearch, ManagerOut, NameCursor, usesOut } from "./access-schemas.ts";

const Body = z.strictObject({
  search: ListSearch.describe("Search text: matches if the id or name contains it, ignoring case."),
  limit: LongLimit,
  cursor: NameCursor.optional(),
});
type Body = z.output<typeof Body>;

const ListedNamespace = NamespaceOut.extend({
  manager: ManagerOut,
  overrideCount: usesOut("How many overrides it has"),
});
type ListedNamespace = z.input<typeof ListedNamespace>;

const required = { readNamespace: onNamespaces("read_namespace") };

export const listNamespaces = defineListProcedure({
  path: "admin.listNamespaces",
  effect: "read",
  summary: "List the rate-limit namespaces with their manifests",
  description: "Lists live namespaces in the order of their names.",
  permissions: required,
  errors: ["request_timeout"],
  addition: true,
  body: Body,
  item: ListedNamespace,
  paginated: true,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Page<ListedNamespace>> {
  const { body, caller, deps } = call;
  const { limit, cursor = "", search = "" } = body;
  call.require(required.readNamespace);
  const { workspaceId } = caller;
  // Reads one extra row. If it exists, there is a next page, which starts with this row.
  const requested = { workspaceId, cursor, search: search.trim(), rowsMax: limit + 1 };
  const rows = await readBriefly(deps, "Searching for a longer text is often faster.", (db) =>
    listNamespacesByName(db, requested),
  );
  const items = rows.slice(0, limit).map((row) => ({
    ...toNamespaceOut(row),
    ...(row.manager === null ? {} : { manager: row.manager }),
    overrideCount: row.overrides,
  }));
  return { items, cursor: rows[limit]?.name };
}
