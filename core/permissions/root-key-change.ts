import { beyond } from "./root-key.ts";

/* Effect of a root key change on authority: which permissions it adds, and whether it reduces any. */

/** Members that determine a root key's authority. Times are Unix ms; `null` means never. */
export interface RootKeyAuthority {
  readonly permissions: readonly string[];
  readonly enabled: boolean;
  readonly expiresAt: number | null;
}

const endsLater = (one: number | null, other: number | null): boolean =>
  other !== null && (one === null || one > other);

/**
 * Returns the tuples that a change adds: the new ones, or all tuples if the change makes the root key usable again or extends its lifetime.
 */
export function addedPermissions(before: RootKeyAuthority, after: RootKeyAuthority): readonly string[] {
  const revives = (after.enabled && !before.enabled) || endsLater(after.expiresAt, before.expiresAt);
  return revives ? after.permissions : beyond(after.permissions, new Set(before.permissions));
}

/** Returns whether the change removes permissions, disables the root key, or makes it expire earlier. */
export function reducesAuthority(before: RootKeyAuthority, after: RootKeyAuthority): boolean {
  if (before.enabled && !after.enabled) return true;
  if (endsLater(before.expiresAt, after.expiresAt)) return true;
  return beyond(before.permissions, new Set(after.permissions)).length > 0;
}
