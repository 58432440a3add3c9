import type { Slots, Slotted } from "../../edge/slots.ts";
import { guardRun, type OnFault } from "../../http1/guard.ts";

/*
 * Requests and connections in flight, checked once a second: which ones are open so long that their key must
 * be checked again, and which ones are stalled. One check of all costs less than a timer for each.
 */

/** What admitted a request, so that it can be checked again. */
export interface Admission {
  readonly method: string;
  readonly path: string;
  /** undefined: no key was needed. */
  readonly hash: string | undefined;
  readonly clientIp: string | undefined;
}

export interface Ongoing extends Slotted {
  /** `performance.now()` at the start. */
  readonly startedMs: number;
  /** When it was last checked. */
  checkedMs: number;
  /** undefined: never checked again. */
  readonly admission: Admission | undefined;
  /** Breaks it off when the client has neither sent nor taken anything for too long. */
  breakIfStalled(nowMs: number): void;
  /** Ends it at once: its key is no longer valid, or the sidecar closes. */
  cut(): void;
}

export type OngoingSet = Slots<Ongoing>;

const LOOK_MS = 1_000;

/** Starts the checks; returns the function that stops them. `isStillValid` never throws. */
export function watchOngoing(options: {
  ongoing: OngoingSet;
  recheckMs: number;
  isStillValid: (admission: Admission) => Promise<boolean>;
  onCut: () => void;
  onFault: OnFault;
}): () => void {
  const { ongoing, recheckMs, isStillValid, onCut, onFault } = options;

  async function recheck(one: Ongoing, admission: Admission): Promise<void> {
    if ((await isStillValid(admission)) || one.slot === -1) return;
    onCut();
    one.cut();
  }

  function look(one: Ongoing, nowMs: number): void {
    one.breakIfStalled(nowMs);
    if (one.admission === undefined || nowMs - one.checkedMs < recheckMs) return;
    one.checkedMs = nowMs;
    recheck(one, one.admission).catch(onFault);
  }

  const timer = setInterval(
    () => {
      const nowMs = performance.now();
      for (const one of ongoing) guardRun(() => look(one, nowMs), onFault);
    },
    Math.min(LOOK_MS, recheckMs),
  );
  timer.unref();
  return () => clearInterval(timer);
}
