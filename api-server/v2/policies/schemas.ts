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
    .describe("Sidecars that reported about the policy in the last 15 seconds.")
    .meta({ examples: [3] }),
  updated: z
    .int()
    .describe("How many of them enforce this version.")
    .meta({ examples: [3] }),
  podIds: z
    .array(z.string())
    .optional()
    .describe("Their names, as they report them; omitted for none, and for more than 1,000 of them.")
    .meta({ examples: [["shop/orders-7c9d8f6b5-x2k4q"]] }),
  maxStalenessMs: z
    .int()
    .describe("The staleness of the sidecar that lags most, ms.")
    .meta({ examples: [850] }),
  unsupported: z
    .strictObject({
      pods: z
        .int()
        .describe("How many.")
        .meta({ examples: [1] }),
      reason: z
        .string()
        .describe("The reason that one of them gave.")
        .meta({ examples: ["format 2 is not known here, where 1 is the highest"] }),
    })
    .optional()
    .describe("Sidecars that cannot enforce this version, because they are of an older release; omitted when none is."),
  upstreamPorts: z
    .array(
      z.strictObject({
        port: z
          .int()
          .describe("A port in their own pods.")
          .meta({ examples: [8080] }),
        pods: z
          .int()
          .describe("How many of them.")
          .meta({ examples: [3] }),
      }),
    )
    .optional()
    .describe(
      "The ports to which these sidecars forward requests, at most 10, the most frequent first; omitted when none of them reports one.",
    ),
  overAdmitted: z
    .strictObject({
      units: z
        .int()
        .describe("Units that they admitted beyond limits.")
        .meta({ examples: [40] }),
      percent: z
        .int()
        .describe("By how much a limit was exceeded at most, in percent of it.")
        .meta({ examples: [34] }),
      lastAgoMs: z
        .int()
        .describe("How long ago the last of these was found out, ms.")
        .meta({ examples: [93_000] }),
    })
    .optional()
    .describe(
      "How far limits were exceeded while the shared counters were away, as these sidecars found out since they started; omitted when none was. Limits with `async: true` are omitted.",
    ),
});
export type DataPlane = z.output<typeof DataPlane>;

export const ManagerOut = z
  .string()
  .optional()
  .describe("`<cluster>/<kind>/<namespace>/<name>` of the manifest that it comes from; omitted: unmanaged.")
  .meta({ examples: ["main/ApiKeyPolicy/shop/orders"] });

export const PolicyHead = z.strictObject({
  policyId: PolicyId,
  workspaceId: z
    .string()
    .describe("Id of the workspace, which a sidecar is started with.")
    .meta({ examples: ["ws_7vHb3Nc5Mx9Lq2Tz"] }),
  apiId: ApiId.describe("Id of the API whose keys are accepted."),
  name: PolicyName,
  manager: ManagerOut,
  uid: z
    .string()
    .describe("The manifest's uid.")
    .meta({ examples: ["6f1d4b0e-52c1-4c55-9f0e-0a8c3c1b7a11"] }),
  generation: z
    .int()
    .describe("The manifest's generation.")
    .meta({ examples: [4] }),
  version: z
    .int()
    .describe("Increases with every change of the stored policy.")
    .meta({ examples: [12] }),
  dataPlane: DataPlane.optional().describe("Omitted while the store that sidecars report to is away."),
});
export type PolicyHead = z.output<typeof PolicyHead>;

export async function describePolicy(deps: Deps, workspaceId: string, row: PolicyHeadRow): Promise<PolicyHead> {
  const [head] = await describePolicies(deps, workspaceId, [row]);
  if (head === undefined) throw new Error("a policy was described as nothing");
  return head;
}

/** Describes policies of one workspace, in their order. The reports of all their sidecars are read in one round trip. */
export async function describePolicies(
  deps: Deps,
  workspaceId: string,
  rows: readonly PolicyHeadRow[],
): Promise<PolicyHead[]> {
  const reports = await findReports(deps, workspaceId, rows);
  return rows.map((row, i) => {
    const { id, api_id: apiId, name, manager, uid, generation, version } = row;
    const reported = reports?.[i];
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

/** Maximum number of pod names, because a client that watches all policies reads them repeatedly. */
const POD_IDS_MAX = 1_000;

function toDataPlane(reports: readonly PodReportSummary[], version: number): DataPlane {
  // A report without a readable version still counts as a rejection.
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

/** Limited, because a compromised pod can report a different port under many names. */
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
