import type { Deps } from "./deps.ts";

/** Logs a failure that every request of an outage causes: at most one line per 5 s and `message`, with the number of failures. */
export function logThrottled(
  { throttle, log }: Pick<Deps, "throttle" | "log">,
  { reason, message }: { reason: string; message: string },
): void {
  const calls = throttle.note(message);
  if (calls !== undefined) log.warn({ reason, calls }, message);
}
