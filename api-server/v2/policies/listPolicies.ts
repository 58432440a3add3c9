import * as z from "zod";
import { findApi } from "../../db/apis.ts";
import { listPolicies as listPolicyRows } from "../../db/policies.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { apiNotFound } from "../../domain/refusals/refusals.ts";
import { type Call, defineListProcedure, type Page } from "../../procedure.ts";
import { ApiId, Cursor, PageLimit } from "../schemas.ts";
import { describePolicies, PolicyHead } from "./schemas.ts";

const Body = z.strictObject({
  apiId: ApiId.optional().describe("Returns only policies of this API."),
  limit: PageLimit,
  cursor: Cursor.optional(),
});
type Body = z.output<typeof Body>;

const required = { readApi: onApi("read_api", "for every policy of the page") };

export const listPolicies = defineListProcedure({
  path: "policies.listPolicies",
  effect: "read",
  summary: "List policies",
  description:
    "Lists policies in the order of their ids, without the policies' contents. The root key must be allowed to read the API of each.",
  permissions: required,
  errors: ["api_not_found"],
  addition: true,
  body: Body,
  item: PolicyHead,
  paginated: true,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Page<PolicyHead>> {
  const { body, caller, deps } = call;
  const { apiId, limit, cursor = "" } = body;
  const { workspaceId } = caller;
  if (apiId !== undefined) {
    if ((await findApi(deps.db, { workspaceId, apiId })) === undefined) throw apiNotFound(apiId);
    call.require(required.readApi, apiId);
  }
  // Reads one extra row. If it exists, there is a next page, which starts with this row.
  const rows = await listPolicyRows(deps.db, { workspaceId, apiId, cursor, rowsMax: limit + 1 });
  const shown = rows.slice(0, limit);
  for (const row of shown) call.require(required.readApi, row.api_id);
  return { items: await describePolicies(deps, workspaceId, shown), cursor: rows[limit]?.id };
}
