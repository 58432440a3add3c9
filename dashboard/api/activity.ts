/*
 * Detects whether a person uses the page. An open page may poll for hours while nobody uses it, and these polls must not keep the session
 * alive. The server trusts what the page reports: a session that someone keeps alive on purpose still ends at its maximum lifetime.
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
