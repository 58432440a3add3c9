import * as z from "zod";
import type { PodReportSummary } from "../../../edge/pods/contract.ts";
import type { PolicyHeadRow } from "../../db/policies.ts";
import type { Deps } from "../../deps.ts";
import { findReports } from "../../domain/policies/find-reports.ts";
import { overAdmittedBy, toJsonMs } from "../../domain/policies/pod-state.ts";
import { ApiId } from "../schemas.ts";

/* Shared fields of policies.* (api-v2.md section 24.2). */

export const PolicyId = z
  .string()
  .min(3)
  .max(255)
  .regex(/^[a-zA-Z0-9_]+$/)
  .describe("Id of the policy.")
  .meta({ examples: ["pol_6e5bd26a08226eff56e6d06e59fb97d8"] });

export const PolicyName = z
  .string()
  .regex(/^[a-zA-Z0-9._-]{1,253}\/[a-zA-Z0-9._-]{1,253}\/[a-zA-Z0-9._-]{1,253}$/)
  .describe("`<cluster>/<namespace>/<name>` of the manifest; unique within the API.")
  .meta({ examples: ["main/shop/orders"] });

export const DataPlane = z.strictObject({
  pods: z
    .int()
    .describe("Number of gates that reported on the policy in the last 15 seconds.")
    .meta({ examples: [3] }),
  updated: z
    .int()
    .describe("Number of gates that enforce this version.")
    .meta({ examples: [3] }),
  podIds: z
    .array(z.string())
    .optional()
    .describe("Names of the gates, as they report them; omitted if there are none or more than 1,000.")
    .meta({ examples: [["shop/orders-7c9d8f6b5-x2k4q"]] }),
  maxStalenessMs: z
    .int()
    .describe("Largest staleness of a gate, in ms.")
    .meta({ examples: [850] }),
  unsupported: z
    .strictObject({
      pods: z
        .int()
        .describe("Number of gates that cannot enforce this version.")
        .meta({ examples: [1] }),
      reason: z
        .string()
        .describe("Reason, as reported by one of the gates that cannot enforce this version.")
        .meta({ examples: ["format 3 is not known here, where 2 is the highest"] }),
    })
    .optional()
    .describe("Gates of an older release that cannot enforce this version; omitted if there are none."),
  upstreamPorts: z
    .array(
      z.strictObject({
        port: z
          .int()
          .describe("Port of the app in the pod.")
          .meta({ examples: [8080] }),
        pods: z
          .int()
          .describe("Number of gates that forward to this port.")
          .meta({ examples: [3] }),
      }),
    )
    .optional()
    .describe(
      "Ports to which the gates forward requests, at most 10, most frequent first; omitted if no gate reports one.",
    ),
  overAdmitted: z
    .strictObject({
      units: z
        .int()
        .describe("Units that gates admitted beyond limits.")
        .meta({ examples: [40] }),
      percent: z
        .int()
        .describe("Largest excess over a limit, in percent of the limit.")
        .meta({ examples: [34] }),
      lastAgoMs: z
        .int()
        .describe("Time since the latest excess was detected, in ms.")
        .meta({ examples: [93_000] }),
    })
    .optional()
    .describe(
      "How far limits were exceeded while the shared counters were unavailable, as detected by the gates since their start; omitted if no limit was. Limits with `async: true` are not included.",
    ),
});
export type DataPlane = z.output<typeof DataPlane>;

export const ManagerOut = z
  .string()
  .optional()
  .describe("Manager: `<cluster>/<kind>/<namespace>/<name>` of the manifest. Omitted for an unmanaged policy.")
  .meta({ examples: ["main/ApiKeyPolicy/shop/orders"] });

export const PolicyHead = z.strictObject({
  policyId: PolicyId,
  workspaceId: z
    .string()
    .describe("Id of the workspace. Gates of the policy are started with it.")
    .meta({ examples: ["ws_7vHb3Nc5Mx9Lq2Tz"] }),
  apiId: ApiId.describe("Id of the API whose keys are accepted."),
  name: PolicyName,
  manager: ManagerOut,
  uid: z
    .string()
    .describe("Uid of the manifest.")
    .meta({ examples: ["6f1d4b0e-52c1-4c55-9f0e-0a8c3c1b7a11"] }),
  generation: z
    .int()
    .describe("Generation of the manifest.")
    .meta({ examples: [4] }),
  version: z
    .int()
    .describe("Version, which increases with every change of the stored policy.")
    .meta({ examples: [12] }),
  dataPlane: DataPlane.optional().describe("State of the gates; omitted while Redis is unavailable."),
});
export type PolicyHead = z.output<typeof PolicyHead>;

export async function describePolicy(deps: Deps, workspaceId: string, row: PolicyHeadRow): Promise<PolicyHead> {
  const [head] = await describePolicies(deps, workspaceId, [row]);
  if (head === undefined) throw new Error("a policy was described as nothing");
  return head;
}

/** Describes policies of one workspace, in the given order. The reports of all their sidecars are read in one round trip. */
export async function describePolicies(
  deps: Deps,
  workspaceId: string,
  rows: readonly PolicyHeadRow[],
): Promise<PolicyHead[]> {
  const reports = await findReports(deps, workspaceId, rows);
  return rows.map((row, i) => {
    const { id, api_id: apiId, name, manager, uid, generation, version } = row;
    const reported = reports?.[i]?.reporting;
    return {
      policyId: id,
      workspaceId,
      apiId,
      name,
      ...(manager === null ? {} : { manager }),
      uid,
      generation,
      version,
      ...(reported === undefined ? {} : { dataPlane: toDataPlane(reported, version) }),
    };
  });
}

/** Maximum number of pod names in a response. It keeps responses small for clients that poll all policies. */
const POD_IDS_MAX = 1_000;

function toDataPlane(reports: readonly PodReportSummary[], version: number): DataPlane {
  // Version 0 counts as well: it means that the pod rejects a policy whose version it could not read.
  const refusals = reports.flatMap(({ refused }) =>
    refused !== undefined && (refused.version === version || refused.version === 0) ? [refused.reason] : [],
  );
  const [reason] = refusals;
  const overAdmitted = overAdmittedBy(reports);
  const upstreamPorts = upstreamPortsOf(reports);
  return {
    pods: reports.length,
    updated: reports.filter((report) => report.version === version).length,
    ...(reports.length === 0 || reports.length > POD_IDS_MAX ? {} : { podIds: reports.map(({ podId }) => podId) }),
    maxStalenessMs: reports.reduce((oldest, { stalenessMs }) => Math.max(oldest, toJsonMs(stalenessMs)), 0),
    ...(reason === undefined ? {} : { unsupported: { pods: refusals.length, reason } }),
    ...(upstreamPorts.length === 0 ? {} : { upstreamPorts }),
    ...(overAdmitted === undefined ? {} : { overAdmitted }),
  };
}

/**
 * Maximum number of upstream ports in a response. It is limited because a compromised pod can report many ports, each under a different pod
 * name.
 */
const UPSTREAM_PORTS_MAX = 10;

function upstreamPortsOf(reports: readonly PodReportSummary[]): NonNullable<DataPlane["upstreamPorts"]> {
  const byPort = new Map<number, number>();
  for (const { upstreamPort } of reports) {
    if (upstreamPort !== undefined) byPort.set(upstreamPort, (byPort.get(upstreamPort) ?? 0) + 1);
  }
  return [...byPort]
    .map(([port, pods]) => ({ port, pods }))
    .sort((a, b) => b.pods - a.pods || a.port - b.port)
    .slice(0, UPSTREAM_PORTS_MAX);
}
