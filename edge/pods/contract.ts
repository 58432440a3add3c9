import type { Closeable } from "../closeable.ts";

/*
 * Reports of the sidecars, from which the operator (through the API) learns when all pods enforce a policy.
 * A report is valid for 15 seconds; sidecars repeat theirs every few seconds.
 */

export const POD_REPORT_MAX_AGE_MS = 15_000;

export interface PolicyRef {
  readonly workspaceId: string;
  readonly policyId: string;
}

export interface PodReport extends PolicyRef {
  readonly podId: string;
  /** Generation of the manifest from which the policy in force was made; 0 while there is none. */
  readonly generation: number;
  /** Version of the stored policy in force; 0 while there is none. */
  readonly version: number;
  /** Infinity before the first heartbeat. */
  readonly stalenessMs: number;
  /** A stored policy that this pod cannot enforce, because a later release wrote it. */
  readonly refused?: RefusedPolicy;
}

export interface RefusedPolicy {
  /** 0 when the version cannot be read. */
  readonly version: number;
  /** One line, for a person. */
  readonly reason: string;
}

const REASON_CHARS_MAX = 300;

/** Makes a reason safe to show: one line of bounded length. A compromised pod can write anything into its report. */
export const toReason = (text: string): string => text.replaceAll(/\p{C}/gu, " ").slice(0, REASON_CHARS_MAX);

export interface SeenPodReport extends PodReport {
  /** Clock of the shared store, Unix ms. */
  readonly lastSeenMs: number;
}

/** All methods throw when the store cannot be reached. */
export interface PodReports extends Closeable {
  report(report: PodReport): Promise<void>;
  /** Returns the reports younger than `POD_REPORT_MAX_AGE_MS`, sorted by pod id. */
  list(ref: PolicyRef): Promise<SeenPodReport[]>;
  /** Like `list`, for several policies in one round trip; in their order. */
  listEach(refs: readonly PolicyRef[]): Promise<SeenPodReport[][]>;
  /** Called when the pod shuts down; idempotent. */
  remove(ref: PolicyRef & { readonly podId: string }): Promise<void>;
}
