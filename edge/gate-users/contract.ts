/*
 * Redis users, one for each gate, so that workloads need no long-lived password. The control plane creates the users. Each user has only
 * the permissions that its pod needs for one policy, and expires after some hours.
 */

export interface GateRef {
  readonly workspaceId: string;
  readonly policyId: string;
  /** Name that the pod uses in its reports. */
  readonly podId: string;
  /** UID of the pod. A new pod with the same name thus gets another user. */
  readonly podUid: string;
}

export interface GateUser {
  readonly username: string;
  readonly password: string;
  /** Validity from now, in ms. */
  readonly validMs: number;
}

export interface GateUsers {
  /** Creates the gate's user, or gives it a new password, which new connections must use from then on. Throws if the store fails. */
  issue(ref: GateRef): Promise<GateUser>;
  /**
   * Deletes up to 100 users that have expired, or that were not renewed although other gates renewed theirs. Returns the number of deleted
   * users. A user without a recorded expiry gets one, which later sweeps do not extend.
   */
  sweep(): Promise<number>;
}
