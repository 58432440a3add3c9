const POLL_MS_MAX = 1_000;
const POLL_MS_MIN = 10;

/**
 * Calls `look` periodically, so that no timer is required for each wait. The interval is 1 s, or a quarter of the shortest wait if that is
 * shorter. The timer does not keep the process alive; the owner clears it.
 */
export const startSweep = (look: () => void, shortestMs: number): NodeJS.Timeout =>
  setInterval(look, Math.max(POLL_MS_MIN, Math.min(POLL_MS_MAX, shortestMs / 4))).unref();
