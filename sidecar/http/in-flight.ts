import type { Slots, Slotted } from "../../edge/slots.ts";
import { guardRun, type OnInternalError } from "../../http/http1/guard.ts";
import type { Head } from "./head.ts";

/*
 * Checks the requests and connections in flight once a second: rechecks the keys of long-lived requests, and aborts stalled requests. One
 * sweep costs less than a timer per request.
 */

/** Data about the admission of a request, needed to check the request again. */
export interface Admission {
  readonly method: string;
  readonly path: string;
  /** Hash of the key; `undefined` if no key was required. */
  readonly hash: string | undefined;
  readonly clientIp: string | undefined;
  /** Kept because the rules of a later policy may match other hosts and headers than those of the current policy. */
  readonly head: Pick<Head, "host" | "forwarded">;
}

export interface InFlight extends Slotted {
  /** Start time, as `performance.now()`. */
  readonly startedMs: number;
  /** Time of the last check, as `performance.now()`. */
  checkedMs: number;
  /** Data with which the request is checked again; `undefined` if it is never checked again. */
  readonly admission: Admission | undefined;
  /** Aborts the exchange if the client has neither sent nor read any data for too long. */
  abortIfStalled(nowMs: number): void;
  /** Terminates the exchange immediately, because its key is no longer valid or the sidecar closes. */
  cut(): void;
}

export type InFlightSet = Slots<InFlight>;

const POLL_MS = 1_000;

/** Starts the checks, and returns a function that stops them. `isStillValid` must never throw. */
export function watchInFlight(options: {
  inFlight: InFlightSet;
  recheckMs: number;
  isStillValid: (admission: Admission) => Promise<boolean>;
  onCut: () => void;
  onInternalError: OnInternalError;
}): () => void {
  const { inFlight, recheckMs, isStillValid, onCut, onInternalError } = options;

  async function recheck(one: InFlight, admission: Admission): Promise<void> {
    if ((await isStillValid(admission)) || one.slot === -1) return;
    onCut();
    one.cut();
  }

  function check(one: InFlight, nowMs: number): void {
    one.abortIfStalled(nowMs);
    if (one.admission === undefined || nowMs - one.checkedMs < recheckMs) return;
    one.checkedMs = nowMs;
    recheck(one, one.admission).catch(onInternalError);
  }

  const timer = setInterval(
    () => {
      const nowMs = performance.now();
      for (const one of inFlight) guardRun(() => check(one, nowMs), onInternalError);
    },
    Math.min(POLL_MS, recheckMs),
  );
  timer.unref();
  return () => clearInterval(timer);
}
