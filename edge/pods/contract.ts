import type { Closeable } from "../closeable.ts";

/*
 * Reports from the sidecars. The operator reads them (through the API) to determine when all pods enforce a policy. A report is valid for
 * 15 s; sidecars repeat theirs every few seconds.
 */

export const POD_REPORT_MAX_AGE_MS = 15_000;

/** Time for which a pod is listed after it stopped reporting without signing off, because it hangs or was killed. */
export const POD_SILENT_MAX_AGE_MS = 600_000;

export interface PolicyRef {
  readonly workspaceId: string;
  readonly policyId: string;
}

export interface PodReport extends PolicyRef {
  readonly podId: string;
  /** Generation of the manifest of the active policy; 0 if no policy is active. */
  readonly generation: number;
  /** Version of the active stored policy; 0 if no policy is active. */
  readonly version: number;
  /** Staleness of the gate's data, in ms; `Infinity` before the first heartbeat. */
  readonly stalenessMs: number;
  /** A stored policy that this pod cannot enforce, because a newer version wrote it. */
  readonly refused?: RefusedPolicy;
  /**
   * Requests that this pod rejected under the active policy. `undefined` if there is no policy, or if the pod's version does not count by
   * rule.
   */
  readonly refusals?: PodRefusals;
  /**
   * Amount by which this pod exceeded limits that it counted by itself while the shared counters were unreachable; `undefined` if it
   * exceeded none.
   */
  readonly overAdmitted?: PodLimitsExceeded;
  /**
   * Port in its own pod to which the gate forwards requests. `undefined` if it forwards to another host, or if its version does not report
   * the port.
   */
  readonly upstreamPort?: number;
  /** Version of the sidecar; empty if not reported. */
  readonly release?: string;
  readonly region?: string;
}

/** Units that one pod has admitted beyond limits since its start, as far as the shared counters have shown this. */
export interface PodLimitsExceeded {
  /** Units admitted by this pod. */
  readonly units: number;
  /** Largest amount beyond a limit that all pods admitted together, in percent of the limit, rounded up. */
  readonly percent: number;
  /** Time at which a limit was last exceeded, Unix ms of the shared store's clock. */
  readonly lastMs: number;
}

/** Rejections by one pod since its policy became active. Counting starts again with each new policy and each start of the pod. */
export interface PodRefusals {
  /** Time at which counting began, Unix ms of the shared store's clock. */
  readonly sinceMs: number;
  /**
   * Mode of the policy. In `Audit` mode no request was rejected, and the counts are the requests that `Enforce` mode would have rejected.
   */
  readonly mode: "Enforce" | "Audit";
  /** The largest counts; at most `RULE_COUNTS_MAX` of them. */
  readonly counts: readonly RuleCount[];
  /** Sum of the counts that are not in `counts`. */
  readonly others: number;
}

export interface RuleCount {
  /** Index of the rule in the policy; −1 for the implicit rule, `BEFORE_RULES` if no rule was reached. */
  readonly rule: number;
  /** The verification's code, or `MISSING_KEY`, `MALFORMED` or `UNAVAILABLE`. */
  readonly code: string;
  readonly count: number;
}

/** Rule index for requests that were rejected because of their path, before any rule was evaluated. */
export const BEFORE_RULES = -2;

/** Maximum number of counts in a report. It keeps reports below 2 KiB, because every pod sends one every few seconds. */
export const RULE_COUNTS_MAX = 32;

/** Maximum size of a report. A longer one is not genuine: a compromised pod can write anything under its own name. */
export const REPORT_BYTES_MAX = 8_192;

export interface RefusedPolicy {
  /** Version of the rejected policy; 0 if it is unreadable. */
  readonly version: number;
  /** Reason in one line, for administrators. */
  readonly reason: string;
}

const REASON_CHARS_MAX = 300;

/** Makes a reason safe to display: one line of bounded length. A compromised pod can write anything into its report. */
export const toReason = (text: string): string => text.replaceAll(/\p{C}/gu, " ").slice(0, REASON_CHARS_MAX);

export interface PodReportSummary extends PodReport {
  /** Time of the last report, Unix ms of the shared store's clock. */
  readonly lastSeenMs: number;
  /** Whether the last report is older than `POD_REPORT_MAX_AGE_MS`. */
  readonly isSilent: boolean;
}

/** Reports from pods. All methods throw if the store is unreachable. */
export interface PodReports extends Closeable {
  report(report: PodReport): Promise<void>;
  /**
   * Records that this pod enforces the policy. Returns the number of pods that reported within the last `POD_REPORT_MAX_AGE_MS`, including
   * pods that have terminated since then, or `undefined` if the pod's user lacks permission.
   */
  countAlive(ref: PolicyRef & { readonly podId: string }): Promise<number | undefined>;
  /** Returns the reports younger than `POD_SILENT_MAX_AGE_MS`, sorted by pod id. */
  list(ref: PolicyRef): Promise<PodReportSummary[]>;
  /** Returns the reports of several policies in one round trip: one list per ref, in the order of `refs`. */
  listEach(refs: readonly PolicyRef[]): Promise<PodReportSummary[][]>;
  /** Called when the pod shuts down; idempotent. */
  remove(ref: PolicyRef & { readonly podId: string }): Promise<void>;
}
