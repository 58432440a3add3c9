const POLL_MS_MAX = 1_000;
const POLL_MS_MIN = 10;

/**
 * Calls `look` periodically, in place of a timer for each wait: once a second, or four times in the shortest wait if that is less. The
 * owner clears the timer, which does not keep the process alive.
 */
export const startSweep = (look: () => void, shortestMs: number): NodeJS.Timeout =>
  setInterval(look, Math.max(POLL_MS_MIN, Math.min(POLL_MS_MAX, shortestMs / 4))).unref();
