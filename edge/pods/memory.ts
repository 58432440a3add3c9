import {
  POD_REPORT_MAX_AGE_MS,
  type PodReport,
  type PodReportSummary,
  type PodReports,
  type PolicyRef,
  toReason,
} from "./contract.ts";

/** Reports of the sidecars of this process. */
export class MemoryPodReports implements PodReports {
  readonly #nowMs: () => number;
  readonly #byPolicy = new Map<string, Map<string, PodReportSummary>>();

  constructor(nowMs: () => number = Date.now) {
    this.#nowMs = nowMs;
  }

  async report(report: PodReport): Promise<void> {
    const name = policyName(report);
    const pods = this.#byPolicy.get(name) ?? new Map<string, PodReportSummary>();
    this.#byPolicy.set(name, pods);
    const { refused } = report;
    const said = refused === undefined ? {} : { refused: { ...refused, reason: toReason(refused.reason) } };
    pods.set(report.podId, { ...report, ...said, lastSeenMs: this.#nowMs() });
  }

  async countAlive(ref: PolicyRef): Promise<number> {
    return (await this.list(ref)).length;
  }

  async list(ref: PolicyRef): Promise<PodReportSummary[]> {
    const pods = this.#byPolicy.get(policyName(ref));
    if (pods === undefined) return [];
    const oldestMs = this.#nowMs() - POD_REPORT_MAX_AGE_MS;
    for (const [podId, report] of pods) if (report.lastSeenMs < oldestMs) pods.delete(podId);
    return [...pods.values()].sort((a, b) => (a.podId < b.podId ? -1 : 1));
  }

  async listEach(refs: readonly PolicyRef[]): Promise<PodReportSummary[][]> {
    return await Promise.all(refs.map((ref) => this.list(ref)));
  }

  async remove(ref: PolicyRef & { readonly podId: string }): Promise<void> {
    this.#byPolicy.get(policyName(ref))?.delete(ref.podId);
  }

  async close(): Promise<void> {}
}

const policyName = ({ workspaceId, policyId }: PolicyRef): string => `${workspaceId}/${policyId}`;
