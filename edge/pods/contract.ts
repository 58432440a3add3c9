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
  /** What this pod has refused under the policy in force; undefined without one, and from a release that does not count by rule. */
  readonly refusals?: PodRefusals;
  /** How far limits were exceeded that this pod counted alone, because the shared counters were away; undefined for none. */
  readonly overshot?: PodOvershot;
  /** The port in its own pod to which the gate forwards requests; undefined for another host, and from a release that does not report it. */
  readonly upstreamPort?: number;
  /** The release of the sidecar, and its region; empty from a release that does not say. */
  readonly release?: string;
  readonly region?: string;
}

/** What one pod admitted beyond limits since its start, as far as the shared counters have shown it since. */
export interface PodOvershot {
  /** Its own units. */
  readonly units: number;
  /** By how much a limit was exceeded at most by all pods together, in percent of the limit, rounded up. */
  readonly percent: number;
  /** When it was last found out: clock of the shared store, Unix ms. */
  readonly lastMs: number;
}

/** Counts of one pod since its policy came into force. They begin at zero with each policy and each start of the pod. */
export interface PodRefusals {
  /** Clock of the shared store, Unix ms. */
  readonly sinceMs: number;
  /** In `Audit` nothing was refused: this is what `Enforce` would have refused. */
  readonly mode: "Enforce" | "Audit";
  /** The largest ones, at most `RULE_COUNTS_MAX`. */
  readonly counts: readonly RuleCount[];
  /** The sum of those that are not listed. */
  readonly others: number;
}

export interface RuleCount {
  /** Index in the policy, −1 for the implicit rule, `BEFORE_RULES` when no rule was reached. */
  readonly rule: number;
  /** The code of the verification, or `MISSING_KEY`, `MALFORMED` or `UNAVAILABLE`. */
  readonly code: string;
  readonly count: number;
}

/** In place of a rule: the path itself was refused. */
export const BEFORE_RULES = -2;

/** A report stays under 2 KiB, because every pod repeats its own every few seconds. */
export const RULE_COUNTS_MAX = 32;

/** A longer report is not of ours: a compromised pod can write anything under its own name. */
export const REPORT_BYTES_MAX = 8_192;

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
  /**
   * Notes that this pod enforces the policy, and returns how many did in the last `POD_REPORT_MAX_AGE_MS`. A pod that has ended counts
   * until then. undefined when the pod's user may not ask.
   */
  countAlive(ref: PolicyRef & { readonly podId: string }): Promise<number | undefined>;
  /** Returns the reports younger than `POD_REPORT_MAX_AGE_MS`, sorted by pod id. */
  list(ref: PolicyRef): Promise<SeenPodReport[]>;
  /** Like `list`, for several policies in one round trip; in their order. */
  listEach(refs: readonly PolicyRef[]): Promise<SeenPodReport[][]>;
  /** Called when the pod shuts down; idempotent. */
  remove(ref: PolicyRef & { readonly podId: string }): Promise<void>;
}
