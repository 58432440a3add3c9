const POLL_MS_MAX = 1_000;
const POLL_MS_MIN = 10;

/**
 * Calls `look` periodically, so that waits need no timers of their own. The interval is 1 s, or a quarter of the shortest wait if that is
 * shorter. The timer does not keep the process alive; the owner must clear it.
 */
export const startSweep = (look: () => void, shortestMs: number): NodeJS.Timeout =>
  setInterval(look, Math.max(POLL_MS_MIN, Math.min(POLL_MS_MAX, shortestMs / 4))).unref();
