/*
 * Whether somebody sits before the page. A page that shows live figures asks by itself for hours; that must not keep the session of a person alive who
 * has left. The server takes our word: a session that somebody else wants to keep alive ends by its age.
 */

const LEFT_AFTER_MS = 5 * 60_000;

let lastInputMs = performance.now();
const noteInput = (): void => {
  lastInputMs = performance.now();
};
for (const type of ["pointerdown", "pointermove", "keydown", "wheel", "touchstart"]) {
  addEventListener(type, noteInput, { passive: true, capture: true });
}

export const activityHeaders = (): Readonly<Record<string, string>> =>
  performance.now() - lastInputMs > LEFT_AFTER_MS ? { "Postern-Unattended": "1" } : {};
