import { readFileSync } from "node:fs";

/** A timestamp by the clocks that all processes of a host share. */
export interface HostTimestamp {
  /** Identifies the current boot of the kernel; changes with each boot. */
  readonly bootId: string;
  /** Continues across processes, restarts at each boot, and cannot be set. */
  readonly monotonicMs: number;
  /** Continues while the host sleeps, and can be set. */
  readonly wallMs: number;
}

/** Returns `undefined` if the kernel does not report its boot id, because ages would then be uncertain. */
export function hostTimestamp(): HostTimestamp | undefined {
  try {
    const bootId = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    return { bootId, monotonicMs: Number(process.hrtime.bigint()) / 1e6, wallMs: Date.now() };
  } catch {
    return undefined;
  }
}

/**
 * Returns the time since an earlier timestamp, ms: the longer time of both clocks, so that a clock that was stopped or set back makes
 * nothing look younger. `undefined` after another boot, when only the clock that can be set would remain.
 */
export function elapsedMs(since: HostTimestamp, now: HostTimestamp | undefined): number | undefined {
  if (now === undefined || now.bootId !== since.bootId || now.monotonicMs < since.monotonicMs) return undefined;
  return Math.max(now.monotonicMs - since.monotonicMs, now.wallMs - since.wallMs);
}
