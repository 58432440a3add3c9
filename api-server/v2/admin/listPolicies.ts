import * as z from "zod";
import { listPolicyOverviews } from "../../db/policies.ts";
import { readBriefly } from "../../domain/lists/pages.ts";
import { onWorkspace } from "../../domain/permissions/required-permissions.ts";
import { findReports } from "../../domain/policies/find-reports.ts";
import { type Call, defineListProcedure, type Page } from "../../procedure.ts";
import { Cursor, PageLimit, Search } from "../schemas.ts";
import { PolicyOverview, toOverview } from "./policy-schemas.ts";

const Body = z.strictObject({
  search: Search.optional().describe("Search text: matches if the name contains it, ignoring case."),
  limit: PageLimit,
  cursor: Cursor.optional(),
});
type Body = z.output<typeof Body>;

const required = { readPods: onWorkspace("read_pods") };

export const listPolicies = defineListProcedure({
  path: "admin.listPolicies",
  effect: "read",
  summary: "List the policies with the state of their gates",
  description:
    "Lists policies in the order of their ids, each with a summary of its gates' reports, but without the policy itself.",
  permissions: required,
  errors: ["request_timeout"],
  addition: true,
  body: Body,
  item: PolicyOverview,
  paginated: true,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Page<PolicyOverview>> {
  const { body, caller, deps } = call;
  const { limit, cursor = "", search = "" } = body;
  call.require(required.readPods);
  const { workspaceId } = caller;
  // Reads one extra row. If it exists, there is a next page, which starts with this row.
  const page = { workspaceId, search: search.trim(), cursor, rowsMax: limit + 1 };
  const rows = await readBriefly(deps, "Searching for another text may be faster.", (db) =>
    listPolicyOverviews(db, page),
  );
  const shown = rows.slice(0, limit);
  const reports = await findReports(deps, workspaceId, shown);
  const counted = new Set<string>();
  return { items: shown.map((row, i) => toOverview(row, reports?.[i], counted)), cursor: rows[limit]?.id };
}
