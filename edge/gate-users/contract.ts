/*
 * Redis users, each for a single gate, so that workloads hold no long-lived password. The control plane creates the users. Each user has
 * the permissions that one pod needs for one policy, and expires after some hours.
 */

export interface GateRef {
  readonly workspaceId: string;
  readonly policyId: string;
  /** Name that the pod uses in its reports. */
  readonly podId: string;
  /** UID of the pod. A new pod with the name of an old one thus gets another user. */
  readonly podUid: string;
}

export interface GateUser {
  readonly username: string;
  readonly password: string;
  /** Validity from now, in ms. */
  readonly validMs: number;
}

export interface GateUsers {
  /** Creates the gate's user, or gives it a new password, which new connections then need. Throws if the store fails. */
  issue(ref: GateRef): Promise<GateUser>;
  /**
   * Deletes up to 100 users that have expired, or that were not renewed while other gates renewed theirs. Returns the number of deleted
   * users. Gives an expiry to a user that has none on record; later sweeps do not extend it.
   */
  sweep(): Promise<number>;
}
