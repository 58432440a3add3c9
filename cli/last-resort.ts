import type { Logger } from "pino";

/** So many errors in one minute are no longer the work of single requests: a new process serves better than this one. */
const FAULTS_MAX = 100;
const WITHIN_MS = 60_000;

/**
 * Keeps the process alive when an error reaches nobody: an exception that no code caught, or the rejection of a promise that
 * nobody waits for. `onFault` counts and logs it. Past 100 in a minute the process ends with exit code 1 all the same.
 * Returns what gives the errors their usual effect back. See docs/decisions/0011.
 */
export function surviveStrayErrors(options: { log: Logger; onFault: (error: unknown) => void }): () => void {
  const { log, onFault } = options;
  /** `performance.now()` of the last ones, the oldest first. */
  const faultsAtMs: number[] = [];
  const survive = (error: unknown): void => {
    onFault(error);
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
