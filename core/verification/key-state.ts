import type { Code } from "./codes.ts";

/*
 * What a verification would say of a key at this moment, and everything that stands against it: for people who look at a key. The order is
 * that in which verification decides (check-key.ts, conclude.ts); a test holds the two against each other.
 */

/** What stands against a key. */
export const REASONS = [
  "keyDeleted",
  "apiDeleted",
  "workspaceDisabled",
  "disabled",
  "expired",
  "limitReached",
  "noCredits",
] as const;
export type Reason = (typeof REASONS)[number];

export interface KeyFacts {
  readonly isDeleted: boolean;
  readonly isApiDeleted: boolean;
  readonly isWorkspaceEnabled: boolean;
  readonly enabled: boolean;
  readonly expiresMs: number | undefined;
  /** Of the limits that every verification is charged, those with nothing left in their window. */
  readonly limitsReached: number;
  /** undefined: unlimited. */
  readonly remainingCredits: number | undefined;
}

const CODE_OF: Readonly<Record<Reason, Code>> = {
  keyDeleted: "NOT_FOUND",
  apiDeleted: "NOT_FOUND",
  workspaceDisabled: "FORBIDDEN",
  disabled: "DISABLED",
  expired: "EXPIRED",
  limitReached: "RATE_LIMITED",
  noCredits: "USAGE_EXCEEDED",
};

/**
 * The code of a verification that asks for no permissions, comes from an address that the API allows, and costs one credit. `reasons` are all
 * that stand against the key; the first of them decides.
 */
export function keyState(
  { isDeleted, isApiDeleted, isWorkspaceEnabled, enabled, expiresMs, limitsReached, remainingCredits }: KeyFacts,
  nowMs: number,
): { readonly code: Code; readonly reasons: readonly Reason[] } {
  const applies: Readonly<Record<Reason, boolean>> = {
    keyDeleted: isDeleted,
    apiDeleted: isApiDeleted,
    workspaceDisabled: !isWorkspaceEnabled,
    disabled: !enabled,
    // The key still lives in the millisecond of its expiry.
    expired: expiresMs !== undefined && nowMs > expiresMs,
    limitReached: limitsReached > 0,
    noCredits: remainingCredits !== undefined && remainingCredits < 1,
  };
  const reasons = REASONS.filter((reason) => applies[reason]);
  const [first] = reasons;
  return { code: first === undefined ? "VALID" : CODE_OF[first], reasons };
}
