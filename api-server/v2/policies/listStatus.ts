import * as z from "zod";
import { listPolicyStatuses, type PolicyStatusRow } from "../../db/policies.ts";
import type { Deps } from "../../deps.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineListProcedure, type Page } from "../../procedure.ts";
import { Cluster, Cursor, LongLimit } from "../schemas.ts";
import { describePolicies, describePolicy, ManagerOut, PolicyHead } from "./schemas.ts";

const Body = z.strictObject({
  cluster: Cluster.optional().describe("Returns only policies whose name begins with this cluster."),
  limit: LongLimit,
  cursor: Cursor.optional(),
});
type Body = z.output<typeof Body>;

export const PolicyStatus = PolicyHead.extend({
  api: z
    .strictObject({
      name: z
        .string()
        .describe("Name of the policy.")
        .meta({ examples: ["orders"] }),
      manager: ManagerOut,
    })
    .optional()
    .describe("Id of the API; omitted if it was deleted."),
});
export type PolicyStatus = z.input<typeof PolicyStatus>;

const required = { readApi: onApi("read_api", "for every policy of the page") };

export const listStatus = defineListProcedure({
  path: "policies.listStatus",
  effect: "read",
  summary: "Read the state of all policies",
  description:
    "For clients that poll many policies: lists the stored state of each policy and what its gates report, without the policy itself, in the order of their ids. The root key must be allowed to read the API of each.",
  permissions: required,
  errors: [],
  addition: true,
  body: Body,
  item: PolicyStatus,
  paginated: true,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Page<PolicyStatus>> {
  const { body, caller, deps } = call;
  const { cluster, limit, cursor = "" } = body;
  const { workspaceId } = caller;
  // Reads one extra row. If it exists, there is a next page, which starts with this row.
  const rows = await listPolicyStatuses(deps.db, { workspaceId, cluster, cursor, rowsMax: limit + 1 });
  const shown = rows.slice(0, limit);
  for (const row of shown) call.require(required.readApi, row.api_id);
  const heads = await describePolicies(deps, workspaceId, shown);
  const items = heads.map((head, i) => ({ ...head, ...apiOf(shown[i]) }));
  return { items, cursor: rows[limit]?.id };
}

/** Returns the status of one policy; `undefined` if it does not exist. */
export async function findPolicyStatus(
  deps: Deps,
  { workspaceId, policyId }: { readonly workspaceId: string; readonly policyId: string },
): Promise<PolicyStatus | undefined> {
  const page = { workspaceId, cluster: undefined, cursor: policyId, rowsMax: 1 };
  const row = (await listPolicyStatuses(deps.db, page)).find(({ id }) => id === policyId);
  return row && { ...(await describePolicy(deps, workspaceId, row)), ...apiOf(row) };
}

function apiOf(row: PolicyStatusRow | undefined): Pick<PolicyStatus, "api"> {
  if (row === undefined || row.api_name === null) return {};
  const { api_name: name, api_manager: manager } = row;
  return { api: { name, ...(manager === null ? {} : { manager }) } };
}
