/** Number of pods that enforce the policy, including this pod, as of the last report; 0 before the first. */
export interface PodsAlive {
  count: number;
}
