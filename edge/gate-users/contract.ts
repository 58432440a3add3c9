/*
 * Redis users for single gates, so that workloads hold no long-lived password. The control plane creates the users. Each user has the
 * permissions that one pod needs for one policy, and expires after some hours.
 */

export interface GateRef {
  readonly workspaceId: string;
  readonly policyId: string;
  /** Name that the pod uses in its reports. */
  readonly podId: string;
  /** UID of the pod, so that a new pod with an old name gets another user. */
  readonly podUid: string;
}

export interface GateUser {
  readonly username: string;
  readonly password: string;
  /** Validity from now, in ms. */
  readonly validMs: number;
}

export interface GateUsers {
  /** Creates the gate's user, or sets a new password. New connections then need the new password. Throws if the store fails. */
  issue(ref: GateRef): Promise<GateUser>;
  /**
   * Deletes up to 100 users that have expired, or that were not renewed while other gates renewed theirs. Returns the number of deleted
   * users. A user without a recorded expiry gets one, which later sweeps do not extend.
   */
  sweep(): Promise<number>;
}
