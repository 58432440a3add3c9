import { setTimeout as sleep } from "node:timers/promises";
import type { Journal } from "../journal.ts";

const EVERY_MS = 100;
/** On two busy cores, a process is normally scheduled within some ten milliseconds. */
const STALL_MS = 400;

/** Records when this process was not scheduled although it had work: then the processes that it watches were not either. */
export async function watchMachine(journal: Journal, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const startedMs = Date.now();
    await sleep(EVERY_MS);
    const endedMs = Date.now();
    if (endedMs - startedMs < EVERY_MS + STALL_MS) continue;
    journal.add({ type: "fault", kind: "stall", target: "machine", startedMs, endedMs });
  }
}
