/*
 * Delay of events before a roll-up. A roll-up writes one row for all events of a bucket with the same dimensions, so larger roll-ups cost
 * less per event. With few events, a roll-up takes milliseconds and events wait one second. Under load, roll-ups may use a fixed share of
 * time and events wait longer.
 *
 * The delay depends on the age of the oldest event, not on the time of the last roll-up, so that several processes together roll up as
 * often as one.
 */

const WAIT_MS = { min: 1_000, max: 30_000 };
/** Multiple of the roll-up's own duration, which limits roll-ups to a quarter of the time of one connection. */
const TIMES_THE_RUN = 3;

/** Returns the minimum age of the oldest event for the next roll-up, after a roll-up of `ranMs`. */
export const waitAfter = (ranMs: number): number => Math.min(WAIT_MS.max, Math.max(WAIT_MS.min, TIMES_THE_RUN * ranMs));
