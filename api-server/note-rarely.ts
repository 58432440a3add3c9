import type { Deps } from "./deps.ts";

/** Logs a failure that every request of an outage causes: one line in five seconds for each `message`, with the number of failures. */
export function noteRarely(
  { rarely, log }: Pick<Deps, "rarely" | "log">,
  { reason, message }: { reason: string; message: string },
): void {
  const calls = rarely.note(message);
  if (calls !== undefined) log.warn({ reason, calls }, message);
}
