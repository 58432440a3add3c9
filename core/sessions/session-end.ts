/*
 * Expiry of a session. An idle session expires, because the user may have left. Every session has a fixed lifetime, because otherwise a
 * stolen cookie could be kept alive indefinitely.
 */

export interface SessionTimes {
  /** Maximum idle time, in ms. */
  readonly idleMs: number;
  /** Maximum lifetime, in ms. */
  readonly maxMs: number;
}

/**
 * Default session times. With them, users sign in once per working day, and a session that is left open in the evening ends. Two idle hours
 * allow for a long meeting. A shorter time would send users to the provider after each break, which trains them to sign in without
 * checking.
 */
export const DEFAULT_SESSION_TIMES: SessionTimes = { idleMs: 2 * 3_600_000, maxMs: 12 * 3_600_000 };

/** Minimum interval between writes of the last-seen time. It is also the precision of the idle timeout. */
export const SEEN_EVERY_MS = 60_000;

export type SessionEnd = "signedOut" | "idle" | "tooOld";

/**
 * Returns why a session has expired at `nowMs`; `undefined` while it is active. A session is still active in the millisecond of its end.
 */
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
