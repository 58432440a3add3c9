const LOOK_MS_MAX = 1_000;
const LOOK_MS_MIN = 10;

/**
 * Calls `look` again and again, in place of a timer for each of many waits: once a second, or four times in the shortest of the waits when that is
 * shorter. The owner clears the timer, which keeps no process alive.
 */
export const lookRegularly = (look: () => void, shortestMs: number): NodeJS.Timeout =>
  setInterval(look, Math.max(LOOK_MS_MIN, Math.min(LOOK_MS_MAX, shortestMs / 4))).unref();
