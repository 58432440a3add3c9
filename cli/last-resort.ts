import type { Logger } from "pino";

/**
 * Maximum number of uncaught errors per minute. At a higher rate the cause is not a single request, so the process exits and is restarted.
 */
const FAULTS_MAX = 100;
const WITHIN_MS = 60_000;

/**
 * Keeps the process running after an uncaught exception or an unhandled rejection. `onInternalError` counts and logs the error. After more
 * than 100 errors in a minute the process exits with code 1. Returns a function that restores the default handling. See
 * docs/decisions/0011.
 */
export function surviveStrayErrors(options: { log: Logger; onInternalError: (error: unknown) => void }): () => void {
  const { log, onInternalError } = options;
  /** Times of the most recent errors by `performance.now()`, oldest first. */
  const faultsAtMs: number[] = [];
  const survive = (error: unknown): void => {
    onInternalError(error);
    const nowMs = performance.now();
    faultsAtMs.push(nowMs);
    if (faultsAtMs.length <= FAULTS_MAX) return;
    const oldestMs = faultsAtMs.shift() ?? nowMs;
    if (nowMs - oldestMs > WITHIN_MS) return;
    log.fatal({ err: error, faults: FAULTS_MAX, withinMs: WITHIN_MS }, "too many uncaught errors; exiting");
    process.exit(1);
  };
  process.on("uncaughtException", survive);
  return () => process.off("uncaughtException", survive);
}
