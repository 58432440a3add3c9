import * as z from "zod";
import { countOverrides, listOverrides as listRows } from "../../db/overrides.ts";
import { onNamespace } from "../../domain/permissions/required-permissions.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../procedure.ts";
import { Cursor, PageLimit, Total } from "../schemas.ts";
import { NamespaceId, NamespaceName, OverrideResponse, toOverrideResponse } from "./schemas.ts";
import { checkNamespaceSelector, selectNamespace } from "./select-namespace.ts";

const Query = z.object({
  namespaceId: NamespaceId.optional(),
  namespaceName: NamespaceName.optional(),
  limit: PageLimit,
  cursor: Cursor.optional(),
});
type Query = z.output<typeof Query>;

const ResponseBody = z.object({
  overrides: z.array(OverrideResponse).describe("Overrides on this page."),
  total: Total,
  cursor: Cursor.optional(),
});
type ResponseBody = z.input<typeof ResponseBody>;

const required = { readOverride: onNamespace("read_override") };

export const listOverrides = defineV1Procedure({
  path: "ratelimits.listOverrides",
  method: "GET",
  successor: "ratelimit.listOverrides",
  effect: "read",
  summary: "List the overrides of a namespace",
  description: "Lists overrides in the order of their ids. `cursor` is present only if more follow.",
  permissions: required,
  errors: ["ratelimit_namespace_not_found"],
  input: Query,
  check: checkNamespaceSelector,
  response: ResponseBody,
  handle,
});

async function handle(call: Call<Query, typeof required>): Promise<ResponseBody> {
  const { body, caller, deps } = call;
  const { limit, cursor = "" } = body;
  const { workspaceId } = caller;
  const namespaceId = await selectNamespace(call, required.readOverride, body);
  call.require(required.readOverride, namespaceId);
  // Reads one extra row. If it exists, there is a next page, which starts with this row.
  const [rows, total] = await Promise.all([
    listRows(deps.db, { workspaceId, namespaceId, cursor, rowsMax: limit + 1 }),
    countOverrides(deps.db, { workspaceId, namespaceId }),
  ]);
  const next = rows[limit]?.id;
  const overrides = rows.slice(0, limit).map(toOverrideResponse);
  return { overrides, total, ...(next === undefined ? {} : { cursor: next }) };
}
