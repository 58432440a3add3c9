import { readFileSync } from "node:fs";

/** A timestamp of the clocks that all processes of a host share. */
export interface HostTimestamp {
  /** Identifier of the current boot of the kernel. */
  readonly bootId: string;
  /** Monotonic time of the host. All processes share it, it restarts at each boot, and it cannot be set. */
  readonly monotonicMs: number;
  /** Wall-clock time, which also advances while the host sleeps, and which can be set. */
  readonly wallMs: number;
}

/** Returns the current timestamp; `undefined` if the kernel does not report its boot id, because no age could then be trusted. */
export function hostTimestamp(): HostTimestamp | undefined {
  try {
    const bootId = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    return { bootId, monotonicMs: Number(process.hrtime.bigint()) / 1e6, wallMs: Date.now() };
  } catch {
    return undefined;
  }
}

/**
 * Returns the time since an earlier timestamp, ms: the larger of the two clocks' differences, so that a clock that stopped or was set back
 * does not make data look newer. Returns `undefined` after a reboot: then only the wall clock could measure the time, and it is not
 * reliable because it can be set.
 */
export function elapsedMs(since: HostTimestamp, now: HostTimestamp | undefined): number | undefined {
  if (now === undefined || now.bootId !== since.bootId || now.monotonicMs < since.monotonicMs) return undefined;
  return Math.max(now.monotonicMs - since.monotonicMs, now.wallMs - since.wallMs);
}
