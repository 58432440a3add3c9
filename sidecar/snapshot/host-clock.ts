import { readFileSync } from "node:fs";

/** A moment by the clocks that all processes of a host share. */
export interface HostMoment {
  /** Of the kernel that runs; another one after each boot. */
  readonly bootId: string;
  /** Goes on when processes end, begins again at each boot, cannot be set. */
  readonly monotonicMs: number;
  /** Goes on also while the host sleeps, and can be set. */
  readonly wallMs: number;
}

/** undefined where the kernel does not say which boot this is: then no age would be certain. */
export function hostMoment(): HostMoment | undefined {
  try {
    const bootId = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    return { bootId, monotonicMs: Number(process.hrtime.bigint()) / 1e6, wallMs: Date.now() };
  } catch {
    return undefined;
  }
}

/**
 * How long ago an earlier moment was, ms: the longer time of both clocks, so that nothing looks younger because one stood still or was set
 * back. undefined when that is not certain: after another boot only the clock that can be set would say so.
 */
export function elapsedMs(since: HostMoment, now: HostMoment | undefined): number | undefined {
  if (now === undefined || now.bootId !== since.bootId || now.monotonicMs < since.monotonicMs) return undefined;
  return Math.max(now.monotonicMs - since.monotonicMs, now.wallMs - since.wallMs);
}
