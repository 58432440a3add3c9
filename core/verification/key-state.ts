import type { Code } from "./codes.ts";

/*
 * Current state of a key and all reasons to reject it, for display. A test verifies that the reasons have the order of a verification
 * (check-key.ts, conclude.ts).
 */

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

export interface KeyDetails {
  readonly isDeleted: boolean;
  readonly isApiDeleted: boolean;
  readonly isWorkspaceEnabled: boolean;
  readonly enabled: boolean;
  readonly expiresMs: number | undefined;
  /** Number of automatically charged limits with no units left in the current window. */
  readonly limitsReached: number;
  /** `undefined` if unlimited. */
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
 * Returns the code that a verification would have if it required no permissions, came from an allowed address, and cost one credit.
 * `reasons` are all reasons to reject the key; the first one determines the code.
 */
export function keyState(
  { isDeleted, isApiDeleted, isWorkspaceEnabled, enabled, expiresMs, limitsReached, remainingCredits }: KeyDetails,
  nowMs: number,
): { readonly code: Code; readonly reasons: readonly Reason[] } {
  const applies: Readonly<Record<Reason, boolean>> = {
    keyDeleted: isDeleted,
    apiDeleted: isApiDeleted,
    workspaceDisabled: !isWorkspaceEnabled,
    disabled: !enabled,
    // The key is still valid in the millisecond of its expiry.
    expired: expiresMs !== undefined && nowMs > expiresMs,
    limitReached: limitsReached > 0,
    noCredits: remainingCredits !== undefined && remainingCredits < 1,
  };
  const reasons = REASONS.filter((reason) => applies[reason]);
  const [first] = reasons;
  return { code: first === undefined ? "VALID" : CODE_OF[first], reasons };
}
