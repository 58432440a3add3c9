import {
  POD_REPORT_MAX_AGE_MS,
  POD_SILENT_MAX_AGE_MS,
  type PodReport,
  type PodReportSummary,
  type PodReports,
  type PolicyRef,
  toReason,
} from "./contract.ts";

type StoredReport = Omit<PodReportSummary, "isSilent">;

/** Reports from sidecars, kept in the memory of this process. */
export class MemoryPodReports implements PodReports {
  readonly #nowMs: () => number;
  readonly #byPolicy = new Map<string, Map<string, StoredReport>>();

  constructor(nowMs: () => number = Date.now) {
    this.#nowMs = nowMs;
  }

  async report(report: PodReport): Promise<void> {
    const name = policyName(report);
    const pods = this.#byPolicy.get(name) ?? new Map<string, StoredReport>();
    this.#byPolicy.set(name, pods);
    const { refused } = report;
    const said = refused === undefined ? {} : { refused: { ...refused, reason: toReason(refused.reason) } };
    pods.set(report.podId, { ...report, ...said, lastSeenMs: this.#nowMs() });
  }

  async countAlive(ref: PolicyRef): Promise<number> {
    return (await this.list(ref)).filter(({ isSilent }) => !isSilent).length;
  }

  async list(ref: PolicyRef): Promise<PodReportSummary[]> {
    const pods = this.#byPolicy.get(policyName(ref));
    if (pods === undefined) return [];
    const nowMs = this.#nowMs();
    for (const [podId, { lastSeenMs }] of pods) if (lastSeenMs < nowMs - POD_SILENT_MAX_AGE_MS) pods.delete(podId);
    return [...pods.values()]
      .map((report) => ({ ...report, isSilent: report.lastSeenMs < nowMs - POD_REPORT_MAX_AGE_MS }))
      .sort((a, b) => (a.podId < b.podId ? -1 : 1));
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
