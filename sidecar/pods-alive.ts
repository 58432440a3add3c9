/** How many pods enforce the policy, this one among them, as last heard of; 0 when never. */
export interface PodsAlive {
  count: number;
}
