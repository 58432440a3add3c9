import type { Counters } from "../../edge/counters/contract.ts";
import { Rarely } from "../../edge/rarely.ts";
import type { Deps } from "../deps.ts";

const notedByCounters = new WeakMap<Counters, Rarely>();

/** Logs what becomes of a call that the counters failed: of each kind of `message` one line in five seconds, with how many. */
export function noteRarely(
  { counters, log }: Pick<Deps, "counters" | "log">,
  { reason, message }: { reason: string; message: string },
): void {
  const noted = notedByCounters.get(counters) ?? new Rarely();
  notedByCounters.set(counters, noted);
  const calls = noted.note(message);
  if (calls !== undefined) log.warn({ reason, calls }, message);
}
