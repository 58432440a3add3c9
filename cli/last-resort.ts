import type { Logger } from "pino";

/** More errors than this in one minute are not caused by single requests: a new process is better than this one. */
const FAULTS_MAX = 100;
const WITHIN_MS = 60_000;

/**
 * Keeps the process alive after an exception that no code caught, or a rejected promise that has no handler. `onInternalError` counts and
 * logs it. After 100 in a minute the process still ends with exit code 1.
 * Returns a function that restores the default handling. See docs/decisions/0011.
 */
export function surviveStrayErrors(options: { log: Logger; onInternalError: (error: unknown) => void }): () => void {
  const { log, onInternalError } = options;
  /** Times of the last ones by `performance.now()`, oldest first. */
  const faultsAtMs: number[] = [];
  const survive = (error: unknown): void => {
    onInternalError(error);
    const nowMs = performance.now();
    faultsAtMs.push(nowMs);
    if (faultsAtMs.length <= FAULTS_MAX) return;
    const oldestMs = faultsAtMs.shift() ?? nowMs;
    if (nowMs - oldestMs > WITHIN_MS) return;
    log.fatal({ err: error, faults: FAULTS_MAX, withinMs: WITHIN_MS }, "too many errors that nothing caught; ending");
    process.exit(1);
  };
  process.on("uncaughtException", survive);
  return () => process.off("uncaughtException", survive);
}
