import type { SeenPodReport } from "../../../edge/pods/contract.ts";
import type { Deps } from "../../deps.ts";
import { noteRarely } from "../../note-rarely.ts";
import type { PolicyHeadRow } from "../../store/policies.ts";

/**
 * The reports of the sidecars of these policies, in their order, read in one round trip. A policy that was moved has those of its former
 * id too. Returns undefined when the shared store is unreachable, because policies must be readable and changeable then too.
 */
export async function findReports(
  { pods, rarely, log }: Pick<Deps, "pods" | "rarely" | "log">,
  workspaceId: string,
  rows: readonly Pick<PolicyHeadRow, "id" | "former_id">[],
): Promise<readonly (readonly SeenPodReport[])[] | undefined> {
  const idsOf = ({ id, former_id }: Pick<PolicyHeadRow, "id" | "former_id">) =>
    former_id === null ? [id] : [id, former_id];
  try {
    const reports = await pods.listEach(rows.flatMap(idsOf).map((policyId) => ({ workspaceId, policyId })));
    const byPolicy = Map.groupBy(reports.flat(), ({ policyId }) => policyId);
    return rows.map((row) => idsOf(row).flatMap((id) => byPolicy.get(id) ?? []));
  } catch (error) {
    // The operator reads every policy repeatedly.
    const reason = error instanceof Error ? error.message : String(error);
    noteRarely({ rarely, log }, { reason, message: "reports of sidecars cannot be read" });
    return undefined;
  }
}
