/*
 * Redis users for single gates, so that workloads hold no long-lived password. The control plane creates them; each has the permissions
 * that one pod needs for one policy, and expires after some hours.
 */

export interface GateRef {
  readonly workspaceId: string;
  readonly policyId: string;
  /** Name under which the pod reports. */
  readonly podId: string;
  /** UID of the pod, so that another pod with the same name gets another user. */
  readonly podUid: string;
}

export interface GateUser {
  readonly username: string;
  readonly password: string;
  /** Validity from now, in ms. */
  readonly validMs: number;
}

export interface GateUsers {
  /**
   * Creates the gate's user, or sets a new password; the previous password is no longer valid for new connections. Throws if the store
   * fails.
   */
  issue(ref: GateRef): Promise<GateUser>;
  /**
   * Deletes up to 100 users that are expired, or that their gates did not renew while others could. Returns the number deleted. Unknown
   * users get a final expiry.
   */
  sweep(): Promise<number>;
}
