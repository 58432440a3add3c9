import * as z from "zod";
import type { PolicyOverviewRow } from "../../db/policies.ts";
import type { PolicyReports } from "../../domain/policies/find-reports.ts";
import { readOnStale, together } from "../../domain/policies/pod-state.ts";
import { ManagerOut, PolicyId, PolicyName } from "../policies/schemas.ts";
import { ApiId, unixMs } from "../schemas.ts";

/* Shared fields of admin.listPolicies and admin.getPolicy (api-v2.md section 24.4). */

export const count = (description: string, example = 3) =>
  z
    .int()
    .describe(description)
    .meta({ examples: [example] });

export const DataPlaneOut = z.strictObject({
  pods: count("Number of gates that reported on the policy in the last 15 seconds."),
  firstPods: count(
    "Number of these gates that no earlier policy of the page has, so that the sum over a page counts a gate once.",
  ),
  silent: count("Number of gates that stopped reporting in the last 10 minutes without signing off.", 0),
  updated: count("Number of gates that enforce this version."),
  behind: count("How many enforce another version.", 0),
  unsupported: count("How many cannot enforce this version, because they are of an older release.", 0),
  reason: z
    .string()
    .optional()
    .describe("Reason why one of these gates cannot enforce the policy.")
    .meta({ examples: ["format 3 is not known here, where 2 is the highest"] }),
  stale: count("How many serve on data that is older than `onStale.after`.", 0),
  expired: count("How many serve nothing, because their data is too old.", 0),
  maxStalenessMs: count("Largest staleness of a gate, in ms.", 850),
  refused: count("Requests that were refused, by what the sidecars of this version report.", 12),
  wouldRefuse: count("Requests that mode Audit let through and Enforce would have refused.", 214),
});

export const PolicyOverview = z.strictObject({
  policyId: PolicyId,
  name: PolicyName,
  manager: ManagerOut,
  apiId: ApiId.describe("Id of the API whose keys are accepted."),
  apiName: z
    .string()
    .optional()
    .describe("Name of the API; omitted if it was deleted.")
    .meta({ examples: ["orders"] }),
  mode: z
    .string()
    .describe("Mode of the policy: `Enforce` or `Audit`.")
    .meta({ examples: ["Audit"] }),
  rules: count("How many rules it has."),
  generation: count("Generation of the manifest.", 4),
  version: count("Version, which increases with every change of the stored policy.", 12),
  changedAt: unixMs("When it was stored last, Unix ms."),
  dataPlane: DataPlaneOut.optional().describe("State of the gates; omitted while Redis is unavailable."),
});
export type PolicyOverview = z.input<typeof PolicyOverview>;

/** @param counted ids of the pods that were counted for earlier policies of the page; see `together`. */
export function toOverview(
  row: PolicyOverviewRow,
  reports: PolicyReports | undefined,
  counted?: Set<string>,
): PolicyOverview {
  const { version } = row;
  return {
    policyId: row.id,
    name: row.name,
    manager: row.manager ?? undefined,
    apiId: row.api_id,
    apiName: row.api_name ?? undefined,
    mode: row.mode ?? "Enforce",
    rules: row.rules,
    generation: row.generation,
    version,
    changedAt: row.changed_at,
    dataPlane: reports && together(reports, { version, onStale: readOnStale(row.on_stale) }, counted),
  };
}
