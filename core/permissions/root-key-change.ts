import { beyond } from "./root-key.ts";

/*
 * What a change of a root key means for who makes it: what it gives to the root key, and whether it takes something away.
 */

/** What decides about what a root key may do. Times are Unix ms; null never comes. */
export interface RootKeyPower {
  readonly permissions: readonly string[];
  readonly enabled: boolean;
  readonly expiresAt: number | null;
}

const endsLater = (one: number | null, other: number | null): boolean =>
  other !== null && (one === null || one > other);

/** The tuples that a change gives: the new ones, and all of them when the root key becomes usable again, or for longer. */
export function givenByChange(before: RootKeyPower, after: RootKeyPower): readonly string[] {
  const revives = (after.enabled && !before.enabled) || endsLater(after.expiresAt, before.expiresAt);
  return revives ? after.permissions : beyond(after.permissions, new Set(before.permissions));
}

/** Whether the root key may do less after the change than before it, now or later. */
export function takesByChange(before: RootKeyPower, after: RootKeyPower): boolean {
  if (before.enabled && !after.enabled) return true;
  if (endsLater(before.expiresAt, after.expiresAt)) return true;
  return beyond(before.permissions, new Set(after.permissions)).length > 0;
}
