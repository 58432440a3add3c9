/*
 * How long events wait for a roll-up. A roll-up writes one row for all events of a bucket and its dimensions, so the more events it
 * takes, the less each costs. With few events a roll-up takes milliseconds, and they wait a second; under load it may use a
 * part of the time, and they wait longer.
 *
 * The age of the oldest event decides, not the time of the last roll-up: so several processes together roll up as often as one.
 */

const WAIT_MS = { min: 1_000, max: 30_000 };
/** Of a roll-up's own time: then roll-ups take at most a quarter of the time of one connection. */
const TIMES_THE_RUN = 3;

/** How old the oldest event must be before a roll-up begins, after one that took `ranMs`. */
export const waitAfter = (ranMs: number): number => Math.min(WAIT_MS.max, Math.max(WAIT_MS.min, TIMES_THE_RUN * ranMs));
