/*
 * Users of the shared store for single gates, so that no password lies where workloads run. The centre makes them; each may do what
 * one pod needs for one policy, and ends by itself after some hours.
 */

export interface GateRef {
  readonly workspaceId: string;
  readonly policyId: string;
  /** The name by which the pod reports. */
  readonly podId: string;
  /** Of the pod: another pod with the same name gets another user. */
  readonly podUid: string;
}

export interface GateUser {
  readonly username: string;
  readonly password: string;
  /** How long it is valid from now. */
  readonly validMs: number;
}

export interface GateUsers {
  /** Makes the gate's user, or gives it a new password; the one before is not valid for new connections. Throws when the store cannot. */
  issue(ref: GateRef): Promise<GateUser>;
  /** Deletes users whose time is over, or that their gates did not renew while others could, at most a hundred. Returns how many. Users that it does not know are given a last time. */
  sweep(): Promise<number>;
}
