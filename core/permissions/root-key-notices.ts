import { DAY_MS } from "../utc-date.ts";

/*
 * What an administrator should know of a root key: that it is old, was never used, ends soon, or holds more than it needs. What it
 * needs is what it was asked for in 30 days; before uses were noted for so long nothing is said about that.
 */

const OLD_DAYS = 90;
const NEVER_USED_DAYS = 7;
const UNUSED_DAYS = 30;
const EXPIRING_DAYS = 14;

/** A tuple that was asked for; the empty text stands for any call. */
export interface UseOfTuple {
  readonly tuple: string;
  /** UTC date, `YYYY-MM-DD`. */
  readonly lastUsedOn: string;
  /** Of a tuple with `*`: the id for which alone it was asked; null for several or none. */
  readonly onlyId: string | null;
}

/** Times are Unix ms. */
export interface NoticedRootKey {
  readonly createdAt: number;
  readonly enabled: boolean;
  /** null never comes. */
  readonly expiresAt: number | null;
  readonly permissions: readonly string[];
  /** Since when it holds these. */
  readonly permissionsSince: number;
  readonly hasSuccessor: boolean;
  readonly uses: readonly UseOfTuple[];
  /** Since when uses are noted. */
  readonly usesSince: number;
}

export const ROOT_KEY_NOTICES = ["old", "never_used", "expired", "expiring", "unused_permissions", "too_wide"] as const;

export interface RootKeyNotice {
  readonly kind: (typeof ROOT_KEY_NOTICES)[number];
  /** Of `unused_permissions` and `too_wide`: the tuples that this is about. */
  readonly permissions?: readonly string[];
}

/** The last UTC date on which the root key was used at all; undefined when no use is known. */
export const lastUseOf = (uses: readonly UseOfTuple[]): string | undefined =>
  uses
    .map(({ lastUsedOn }) => lastUsedOn)
    .reduce<string | undefined>((a, b) => (a === undefined || b > a ? b : a), undefined);

/** What was not asked for in 30 days, and of what is too wide the narrower form. Both empty while that is not known. */
function excessOf(key: NoticedRootKey, nowMs: number): { unused: string[]; narrower: Map<string, string> } {
  const knownFor = nowMs - Math.max(key.createdAt, key.permissionsSince, key.usesSince);
  const narrower = new Map<string, string>();
  if (!(knownFor >= UNUSED_DAYS * DAY_MS) || key.uses.length === 0) return { unused: [], narrower };
  const sinceMs = nowMs - UNUSED_DAYS * DAY_MS;
  const uses = new Map(key.uses.map((use) => [use.tuple, use]));
  const unused: string[] = [];
  for (const tuple of key.permissions) {
    const use = uses.get(tuple);
    // A use is known by its day: the whole day counts.
    if (use === undefined || Date.parse(use.lastUsedOn) + DAY_MS <= sinceMs) unused.push(tuple);
    else if (use.onlyId !== null && tuple.includes(".*.")) narrower.set(tuple, tuple.replace(".*.", `.${use.onlyId}.`));
  }
  return { unused, narrower };
}

export function noticesOf(key: NoticedRootKey, nowMs: number): readonly RootKeyNotice[] {
  const { createdAt, expiresAt, uses, usesSince } = key;
  const { unused, narrower } = excessOf(key, nowMs);
  const isOver = expiresAt !== null && nowMs > expiresAt;
  const isEnding = expiresAt !== null && !isOver && expiresAt - nowMs < EXPIRING_DAYS * DAY_MS;
  const isKnownUnused = uses.length === 0 && nowMs - Math.max(createdAt, usesSince) >= NEVER_USED_DAYS * DAY_MS;
  const notices: (RootKeyNotice | false)[] = [
    isOver && { kind: "expired" },
    isEnding && { kind: "expiring" },
    !isOver && !key.hasSuccessor && nowMs - createdAt > OLD_DAYS * DAY_MS && { kind: "old" },
    isKnownUnused && { kind: "never_used" },
    unused.length > 0 && { kind: "unused_permissions", permissions: unused },
    narrower.size > 0 && { kind: "too_wide", permissions: [...narrower.keys()] },
  ];
  return notices.filter((notice) => notice !== false);
}

/** The tuples that would have been enough for the last 30 days; undefined when that is all that it holds, nothing, or not known. */
export function narrowedPermissions(key: NoticedRootKey, nowMs: number): readonly string[] | undefined {
  const { unused, narrower } = excessOf(key, nowMs);
  if (unused.length === 0 && narrower.size === 0) return undefined;
  const left = key.permissions.filter((tuple) => !unused.includes(tuple)).map((tuple) => narrower.get(tuple) ?? tuple);
  return left.length === 0 ? undefined : [...new Set(left)].sort();
}
