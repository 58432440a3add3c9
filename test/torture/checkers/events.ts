import type { Case, Violation } from "./checker.ts";

/** Events are stored at most once: one per request, and not more of them than requests. */
export function checkEvents({ recorded, sweep, final }: Case): Violation[] {
  const repeated = final.repeatedEvents.map(({ requestId, count }) => ({
    judge: "events",
    what: `${count} events of one request`,
    atMs: 0,
    evidence: { requestId },
  }));
  const asked = recorded.asks.length + sweep.length;
  if (final.eventCount <= asked) return repeated;
  const what = `${final.eventCount} events of ${asked} requests`;
  return [...repeated, { judge: "events", what, atMs: 0, evidence: { asked, events: final.eventCount } }];
}
