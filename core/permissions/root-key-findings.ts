import { DAY_MS } from "../utc-date.ts";

/*
 * Findings about a root key for administrators: the root key is old, was never used, expires soon, or holds unused permissions. A
 * permission is required if it was requested in the last 30 days. Unused permissions are reported only after usage has been recorded for 30
 * days.
 */

const OLD_DAYS = 90;
const NEVER_USED_DAYS = 7;
const UNUSED_DAYS = 30;
const EXPIRING_DAYS = 14;

/** A requested tuple; the empty string represents a call of any kind. */
export interface UseOfTuple {
  readonly tuple: string;
  /** UTC date, `YYYY-MM-DD`. */
  readonly lastUsedOn: string;
  /** The id for which a tuple with `*` was required, if there was only one; otherwise null. */
  readonly onlyId: string | null;
}

/** Root key with the data that findings are derived from. Times are Unix ms. */
export interface NoticedRootKey {
  readonly createdAt: number;
  readonly enabled: boolean;
  /** Expiry; `null` if the root key never expires. */
  readonly expiresAt: number | null;
  readonly permissions: readonly string[];
  /** Time at which the root key got these permissions. */
  readonly permissionsSince: number;
  readonly hasSuccessor: boolean;
  readonly uses: readonly UseOfTuple[];
  /** Time at which the recording of usage began. */
  readonly usesSince: number;
}

export const ROOT_KEY_FINDINGS = [
  "old",
  "never_used",
  "expired",
  "expiring",
  "unused_permissions",
  "too_wide",
] as const;

export interface RootKeyFinding {
  readonly kind: (typeof ROOT_KEY_FINDINGS)[number];
  /** The affected tuples, for `unused_permissions` and `too_wide`. */
  readonly permissions?: readonly string[];
}

/** Returns the last UTC date on which the root key was used; `undefined` if no use is recorded. */
export const lastUseOf = (uses: readonly UseOfTuple[]): string | undefined =>
  uses
    .map(({ lastUsedOn }) => lastUsedOn)
    .reduce<string | undefined>((a, b) => (a === undefined || b > a ? b : a), undefined);

/**
 * Returns the tuples that were not requested in the last 30 days, and narrower replacements for tuples that are too wide. Both lists are
 * empty while the usage is unknown.
 */
function excessOf(key: NoticedRootKey, nowMs: number): { unused: string[]; narrower: Map<string, string> } {
  const knownFor = nowMs - Math.max(key.createdAt, key.permissionsSince, key.usesSince);
  const narrower = new Map<string, string>();
  if (!(knownFor >= UNUSED_DAYS * DAY_MS) || key.uses.length === 0) return { unused: [], narrower };
  const sinceMs = nowMs - UNUSED_DAYS * DAY_MS;
  const uses = new Map(key.uses.map((use) => [use.tuple, use]));
  const unused: string[] = [];
  for (const tuple of key.permissions) {
    const use = uses.get(tuple);
    // Usage is recorded by day, so the last use may have been at any time of that day.
    if (use === undefined || Date.parse(use.lastUsedOn) + DAY_MS <= sinceMs) unused.push(tuple);
    else if (use.onlyId !== null && tuple.includes(".*.")) narrower.set(tuple, tuple.replace(".*.", `.${use.onlyId}.`));
  }
  return { unused, narrower };
}

export function findingsOf(key: NoticedRootKey, nowMs: number): readonly RootKeyFinding[] {
  const { createdAt, expiresAt, uses, usesSince: usageSince } = key;
  const { unused, narrower } = excessOf(key, nowMs);
  const isOver = expiresAt !== null && nowMs > expiresAt;
  const isEnding = expiresAt !== null && !isOver && expiresAt - nowMs < EXPIRING_DAYS * DAY_MS;
  const isKnownUnused = uses.length === 0 && nowMs - Math.max(createdAt, usageSince) >= NEVER_USED_DAYS * DAY_MS;
  const findings: (RootKeyFinding | false)[] = [
    isOver && { kind: "expired" },
    isEnding && { kind: "expiring" },
    !isOver && !key.hasSuccessor && nowMs - createdAt > OLD_DAYS * DAY_MS && { kind: "old" },
    isKnownUnused && { kind: "never_used" },
    unused.length > 0 && { kind: "unused_permissions", permissions: unused },
    narrower.size > 0 && { kind: "too_wide", permissions: [...narrower.keys()] },
  ];
  return findings.filter((finding) => finding !== false);
}

/**
 * Returns the tuples that would have been sufficient in the last 30 days. Returns `undefined` if the root key holds exactly these tuples,
 * if none was needed, or if the usage is unknown.
 */
export function narrowedPermissions(key: NoticedRootKey, nowMs: number): readonly string[] | undefined {
  const { unused, narrower } = excessOf(key, nowMs);
  if (unused.length === 0 && narrower.size === 0) return undefined;
  const left = key.permissions.filter((tuple) => !unused.includes(tuple)).map((tuple) => narrower.get(tuple) ?? tuple);
  return left.length === 0 ? undefined : [...new Set(left)].sort();
}
