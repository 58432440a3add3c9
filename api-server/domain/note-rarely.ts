import { performance } from "node:perf_hooks";
import type { Counters } from "../../edge/counters/contract.ts";
import type { Deps } from "../deps.ts";

/** Every request of an outage comes this way: one line each would bury all others. */
const LOG_EVERY_MS = 5000;

interface Noted {
  /** Since the last line. */
  count: number;
  /** Of `performance.now()`. */
  loggedAtMs: number;
}

const notedByCounters = new WeakMap<Counters, Map<string, Noted>>();

/** Logs what becomes of a call that the counters failed: of each kind of `message` one line in five seconds, with how many. */
export function noteRarely(
  { counters, log }: Pick<Deps, "counters" | "log">,
  { reason, message }: { reason: string; message: string },
): void {
  const kinds = notedByCounters.get(counters) ?? new Map<string, Noted>();
  notedByCounters.set(counters, kinds);
  const noted = kinds.get(message) ?? { count: 0, loggedAtMs: Number.NEGATIVE_INFINITY };
  kinds.set(message, noted);
  noted.count += 1;
  const nowMs = performance.now();
  if (nowMs - noted.loggedAtMs < LOG_EVERY_MS) return;
  log.warn({ reason, calls: noted.count }, message);
  noted.count = 0;
  noted.loggedAtMs = nowMs;
}
