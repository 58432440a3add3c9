import * as z from "zod";
import { listNamespaces as listNamespaceRows } from "../../db/namespaces.ts";
import { readPage } from "../../domain/lists/pages.ts";
import { onNamespaces } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineListProcedure, type Page } from "../../procedure.ts";
import { Cursor, PageLimit, Search } from "../schemas.ts";
import { NamespaceOut, toNamespaceOut } from "./schemas.ts";

const Body = z.strictObject({
  limit: PageLimit,
  cursor: Cursor.optional(),
  search: Search.describe("Search text: matches if the id or name contains it, ignoring case.")
    .meta({ examples: ["email"] })
    .optional(),
});
type Body = z.output<typeof Body>;

const required = { readNamespace: onNamespaces("read_namespace") };

export const listNamespaces = defineListProcedure({
  path: "ratelimit.listNamespaces",
  effect: "read",
  summary: "List the rate-limit namespaces",
  description: "Lists live namespaces in the order of their ids.",
  permissions: required,
  errors: [],
  addition: true,
  body: Body,
  item: NamespaceOut,
  paginated: true,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Page<NamespaceOut>> {
  const { limit, cursor = "", search } = call.body;
  call.require(required.readNamespace);
  // Reads one extra row. If it exists, there is a next page, which starts with this row.
  const page = { workspaceId: call.caller.workspaceId, cursor, rowsMax: limit + 1 };
  const rows = await readPage(call, search, {
    all: (db) => listNamespaceRows(db, { ...page, search: "" }),
    fitting: (db, part) => listNamespaceRows(db, { ...page, search: part }),
  });
  return { items: rows.slice(0, limit).map(toNamespaceOut), cursor: rows[limit]?.id };
}
