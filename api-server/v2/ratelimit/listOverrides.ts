import * as z from "zod";
import { findNamespace } from "../../db/namespaces.ts";
import { listOverrides as listOverrideRows } from "../../db/overrides.ts";
import { onNamespace } from "../../domain/permissions/required-permissions.ts";
import { namespaceNotFound } from "../../domain/refusals/refusals.ts";
import { type Call, defineListProcedure, type Page } from "../../procedure.ts";
import { Cursor } from "../schemas.ts";
import { Namespace, OverrideOut, toOverrideOut } from "./schemas.ts";

const Body = z.strictObject({
  namespace: Namespace,
  limit: z
    .int()
    .min(1)
    .max(100)
    .default(10)
    .describe("Items per page.")
    .meta({ examples: [10] }),
  cursor: Cursor.optional(),
});
type Body = z.output<typeof Body>;

const required = { readOverride: onNamespace("read_override") };

export const listOverrides = defineListProcedure({
  path: "ratelimit.listOverrides",
  effect: "read",
  summary: "List the overrides of a namespace",
  description: "Lists live overrides in the order of their ids.",
  permissions: required,
  errors: ["ratelimit_namespace_not_found"],
  body: Body,
  item: OverrideOut,
  paginated: true,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Page<OverrideOut>> {
  const { body, caller, deps } = call;
  const { limit, cursor = "" } = body;
  const { workspaceId } = caller;
  const namespace = await findNamespace(deps.db, { workspaceId, namespace: body.namespace });
  if (namespace === undefined) throw namespaceNotFound(body.namespace);
  call.require(required.readOverride, namespace.id);
  // Reads one extra row. If it exists, there is a next page, which starts with this row.
  const rows = await listOverrideRows(deps.db, {
    workspaceId,
    namespaceId: namespace.id,
    cursor,
    rowsMax: limit + 1,
  });
  return { items: rows.slice(0, limit).map(toOverrideOut), cursor: rows[limit]?.id };
}
