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
    "Number of these gates that were not already counted for an earlier policy on the page, so the sum over a page counts each gate once.",
  ),
  silent: count("Number of gates that stopped reporting in the last 10 minutes without announcing a shutdown.", 0),
  updated: count("Number of gates that enforce this version."),
  behind: count("Number of gates that enforce another version.", 0),
  unsupported: count("Number of gates that cannot enforce this version, because they are of an older release.", 0),
  reason: z
    .string()
    .optional()
    .describe("Reason why one of these gates cannot enforce the policy.")
    .meta({ examples: ["format 3 is not known here, where 2 is the highest"] }),
  stale: count("Number of gates that serve although their data is older than `onStale.after`.", 0),
  expired: count("Number of gates that reject all requests, because their data is too old.", 0),
  maxStalenessMs: count("Largest staleness of a gate, in ms.", 850),
  refused: count("Number of requests that were rejected, according to the gates that enforce this version.", 12),
  wouldRefuse: count(
    "Number of requests that were admitted in mode Audit, but would have been rejected in mode Enforce.",
    214,
  ),
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
  rules: count("Number of rules in the policy."),
  generation: count("Generation of the manifest.", 4),
  version: count("Version, which increases with every change of the stored policy.", 12),
  changedAt: unixMs("When the policy was last stored, Unix ms."),
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
