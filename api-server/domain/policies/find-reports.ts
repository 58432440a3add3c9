import { logThrottled } from "../../../edge/log-throttle.ts";
import type { PodReportSummary } from "../../../edge/pods/contract.ts";
import type { PolicyHeadRow } from "../../db/policies.ts";
import type { PodDeps } from "../deps.ts";

export interface PolicyReports {
  readonly reporting: readonly PodReportSummary[];
  /** Last reports of pods that stopped reporting without announcing that they were shutting down. */
  readonly silent: readonly PodReportSummary[];
}

/**
 * Reads the reports from the sidecars of these policies in one round trip, and returns them in the order of the policies. If a policy's id
 * has changed, its reports include those under the former id. Returns `undefined` instead of throwing if Redis is unreachable, because
 * reading and changing policies must work without Redis.
 */
export async function findReports(
  { pods, throttle, log }: PodDeps,
  workspaceId: string,
  rows: readonly Pick<PolicyHeadRow, "id" | "former_id">[],
): Promise<readonly PolicyReports[] | undefined> {
  const idsOf = ({ id, former_id }: Pick<PolicyHeadRow, "id" | "former_id">) =>
    former_id === null ? [id] : [id, former_id];
  try {
    const reports = await pods.listEach(rows.flatMap(idsOf).map((policyId) => ({ workspaceId, policyId })));
    const byPolicy = Map.groupBy(reports.flat(), ({ policyId }) => policyId);
    return rows.map((row) => {
      const all = idsOf(row).flatMap((id) => byPolicy.get(id) ?? []);
      return { reporting: all.filter(({ isSilent }) => !isSilent), silent: all.filter(({ isSilent }) => isSilent) };
    });
  } catch (error) {
    // Throttles the log of this failure, because the operator reads every policy repeatedly.
    const reason = error instanceof Error ? error.message : String(error);
    logThrottled({ throttle, log }, { reason, message: "reports of sidecars cannot be read" });
    return undefined;
  }
}
