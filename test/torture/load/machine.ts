import { setTimeout as sleep } from "node:timers/promises";
import type { Journal } from "../journal.ts";

const EVERY_MS = 100;
/** With two cores and as much to do as they can, a turn comes within some ten milliseconds. */
const STALL_MS = 400;

/** Writes down when this process was not run although it had something to do: then neither were those that it watches. */
export async function watchMachine(journal: Journal, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const startedMs = Date.now();
    await sleep(EVERY_MS);
    const endedMs = Date.now();
    if (endedMs - startedMs < EVERY_MS + STALL_MS) continue;
    journal.add({ type: "fault", kind: "stall", target: "machine", startedMs, endedMs });
  }
}
