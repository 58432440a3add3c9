/**
 * Returns the share of a limit that one of several pods may admit while they cannot count together: the limit divided by the pods, rounded
 * down, and at least 1, so that every key can be used. All pods together admit at most the limit, or one unit each if there are more pods
 * than units.
 */
export function shareOfLimit(limit: number, pods: number): number {
  return limit === 0 ? 0 : Math.max(1, Math.floor(limit / Math.max(1, pods)));
}
