import type { Closeable } from "../projection/contract.ts";

/*
 * What each sidecar says of itself, so that the operator can tell (through the API) when all pods enforce a policy.
 * A report is worth something for 15 seconds; sidecars repeat theirs every few.
 */

export const POD_REPORT_MAX_AGE_MS = 15_000;

export interface PolicyRef {
  readonly workspaceId: string;
  readonly policyId: string;
}

export interface PodReport extends PolicyRef {
  readonly podId: string;
  /** Of the manifest that the policy in force was made from; 0 while none is. */
  readonly generation: number;
  /** Of the stored policy in force; 0 while none is. */
  readonly version: number;
  /** Infinity while nothing was heard yet. */
  readonly stalenessMs: number;
  /** A stored policy that this pod cannot enforce, because a later release wrote it. */
  readonly refused?: RefusedPolicy;
}

export interface RefusedPolicy {
  /** 0 when not even that can be read. */
  readonly version: number;
  /** One line, for people. */
  readonly reason: string;
}

const REASON_CHARS_MAX = 300;

/** A reason as it may be shown: one bounded line. A compromised pod can write anything into its report. */
export const toReason = (text: string): string => text.replaceAll(/\p{C}/gu, " ").slice(0, REASON_CHARS_MAX);

export interface SeenPodReport extends PodReport {
  /** Clock of the shared store, Unix ms. */
  readonly lastSeenMs: number;
}

/** All methods throw when the store cannot be reached. */
export interface PodReports extends Closeable {
  report(report: PodReport): Promise<void>;
  /** Reports younger than `POD_REPORT_MAX_AGE_MS`, by pod id. */
  list(ref: PolicyRef): Promise<SeenPodReport[]>;
  /** Says that the pod is going away; idempotent. */
  remove(ref: PolicyRef & { readonly podId: string }): Promise<void>;
}
