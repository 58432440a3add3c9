/*
 * When a session ends by itself. It ends when it was not used for a while, because someone left, and after a fixed time however much it
 * is used, because a stolen cookie would be kept alive for ever.
 */

export interface SessionTimes {
  /** How long it may be unused, ms. */
  readonly idleMs: number;
  /** How long it may last, ms. */
  readonly maxMs: number;
}

/**
 * A working day with one sign-in, and a laptop that is left in the evening has signed itself out. Two hours unused are a long meeting: a
 * shorter time would send people to the provider after each break, which teaches them to sign in without looking.
 */
export const DEFAULT_SESSION_TIMES: SessionTimes = { idleMs: 2 * 3_600_000, maxMs: 12 * 3_600_000 };

/** A session writes when it was last seen no more often than this, so idle ends are exact to this. */
export const SEEN_EVERY_MS = 60_000;

export type SessionEnd = "signedOut" | "idle" | "tooOld";

/** Why a session has ended at `nowMs`; undefined while it has not. It still lives in the millisecond of its end. */
export function endOf(
  session: {
    readonly lastSeenAtMs: number;
    readonly expiresAtMs: number;
    readonly endedAtMs: number | null;
  },
  { idleMs, nowMs }: { readonly idleMs: number; readonly nowMs: number },
): SessionEnd | undefined {
  if (session.endedAtMs !== null) return "signedOut";
  if (nowMs > session.expiresAtMs) return "tooOld";
  if (nowMs > session.lastSeenAtMs + idleMs) return "idle";
  return undefined;
}
