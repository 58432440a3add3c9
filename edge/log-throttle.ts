import type { Logger } from "pino";

/**
 * Minimum time between log lines of one kind. Without it, an error that every request causes would hide all other lines during an outage or
 * attack.
 */
const EVERY_MS = 5_000;

interface Noted {
  /** Number of events since the last log line. */
  count: number;
  /** Time at which the next line is due, as `performance.now()`. */
  dueAtMs: number;
}

/** Decides when a log line is due for each kind of event: for the first event, then at most once every 5 s. */
export class LogThrottle {
  readonly #noted = new Map<string, Noted>();

  /** Counts one event. Returns the number of events since the last line if a line is due now, otherwise `undefined`. */
  note(kind: string): number | undefined {
    let noted = this.#noted.get(kind);
    if (noted === undefined) {
      noted = { count: 0, dueAtMs: Number.NEGATIVE_INFINITY };
      this.#noted.set(kind, noted);
    }
    noted.count += 1;
    const nowMs = performance.now();
    if (nowMs < noted.dueAtMs) return undefined;
    const { count } = noted;
    noted.count = 0;
    noted.dueAtMs = nowMs + EVERY_MS;
    return count;
  }
}

/**
 * Logs a failure that every request may cause during an outage: at most one line per 5 s for each `message`, with the number of failures.
 */
export function logThrottled(
  { throttle, log }: { readonly throttle: LogThrottle; readonly log: Pick<Logger, "warn"> },
  { reason, message }: { readonly reason: string; readonly message: string },
): void {
  const calls = throttle.note(message);
  if (calls !== undefined) log.warn({ reason, calls }, message);
}
