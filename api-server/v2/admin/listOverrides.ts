import * as z from "zod";
import { type ListedOverrideRow, listOverridesByIdentifier } from "../../db/namespace-list.ts";
import { findNamespace } from "../../db/namespaces.ts";
import { readBriefly } from "../../domain/lists/pages.ts";
import { onNamespace } from "../../domain/permissions/required-permissions.ts";
import { namespaceNotFound } from "../../domain/refusals/refusals.ts";
import { type Call, defineListProcedure, type Page } from "../../procedure.ts";
import { Namespace, OverrideOut, toOverrideOut } from "../ratelimit/schemas.ts";
import { LongLimit, unixMs } from "../schemas.ts";
import { ListSearch, ManagerOut, NameCursor } from "./access-schemas.ts";

const Body = z.strictObject({
  namespace: Namespace,
  search: ListSearch.describe("Search text: matches if the id or the identifier contains it, ignoring case."),
  limit: LongLimit,
  cursor: NameCursor.optional(),
});
type Body = z.output<typeof Body>;

const ListedOverride = OverrideOut.extend({
  async: z.boolean().describe("Whether each process counts by itself and syncs in the background."),
  manager: ManagerOut,
  createdAt: unixMs("When the override was first set, Unix milliseconds."),
  updatedAt: unixMs("When the override was last changed, Unix milliseconds.").optional(),
});
type ListedOverride = z.input<typeof ListedOverride>;

const required = { readOverride: onNamespace("read_override") };

export const listOverrides = defineListProcedure({
  path: "admin.listOverrides",
  effect: "read",
  summary: "List the overrides of a namespace with their manifests",
  description: "Lists live overrides in the order of their identifiers.",
  permissions: required,
  errors: ["ratelimit_namespace_not_found", "request_timeout"],
  addition: true,
  body: Body,
  item: ListedOverride,
  paginated: true,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Page<ListedOverride>> {
  const { body, caller, deps } = call;
  const { limit, cursor = "", search = "" } = body;
  const { workspaceId } = caller;
  const namespace = await findNamespace(deps.db, { workspaceId, namespace: body.namespace });
  if (namespace === undefined) throw namespaceNotFound(body.namespace);
  call.require(required.readOverride, namespace.id);
  // Reads one extra row. If it exists, there is a next page, which starts with this row.
  const requested = { workspaceId, namespaceId: namespace.id, cursor, search: search.trim(), rowsMax: limit + 1 };
  const rows = await readBriefly(deps, "Searching for a longer text is often faster.", (db) =>
    listOverridesByIdentifier(db, requested),
  );
  return { items: rows.slice(0, limit).map(toListedOverride), cursor: rows[limit]?.identifier };
}

const toListedOverride = (row: ListedOverrideRow): ListedOverride => ({
  ...toOverrideOut(row),
  async: row.async,
  ...(row.manager === null ? {} : { manager: row.manager }),
  createdAt: row.created_at,
  ...(row.updated_at === null ? {} : { updatedAt: row.updated_at }),
});
