import { QueryRejected } from "../../../analytics/contract.ts";
import { EventsUnavailable } from "../../../edge/events/contract.ts";
import { logThrottled } from "../../../edge/log-throttle.ts";
import type { UsageDeps } from "../deps.ts";
import { type AnalyticsSettings, analyticsSettingsOf } from "./settings.ts";

/**
 * Maximum time until an event reaches its stream: senders batch events for 200 ms, and clocks may differ slightly. Events more recent than
 * this never count as processed.
 */
const SENDING_MS = 1_000;

export interface UsageState extends AnalyticsSettings {
  /** Time up to which all events are in the count tables, Unix ms; `undefined` if a database does not respond, so the time is unknown. */
  readonly countedUntilMs: number | undefined;
}

/** Returns the analytics limits of a workspace, and the time up to which its usage is counted. Ignores events that were lost in transit. */
export async function usageStateOf(deps: UsageDeps, workspaceId: string): Promise<UsageState> {
  const [settings, countedUntilMs] = await Promise.all([
    analyticsSettingsOf(deps.db, workspaceId),
    countedUntil(deps, workspaceId),
  ]);
  return { ...settings, countedUntilMs };
}

/**
 * Returns the time up to which all events are in the count tables. An event can be pending in two places: in the stream of its workspace
 * until it is stored, and in Postgres until a roll-up adds it to the counts.
 */
async function countedUntil(deps: UsageDeps, workspaceId: string): Promise<number | undefined> {
  const nowMs = deps.nowMs();
  try {
    const { depths, failed } = await deps.eventStreams.measure([workspaceId]);
    if (failed.length > 0) return undefined;
    // Reads the count tables after the stream, so that an event that moves between the two reads is counted twice rather than missed.
    const waitingMs = await deps.analytics.uncountedForMs(workspaceId);
    return nowMs - SENDING_MS - Math.max(0, waitingMs, ...depths.map(({ ageMs }) => ageMs));
  } catch (error) {
    if (!(error instanceof EventsUnavailable || error instanceof QueryRejected)) throw error;
    logThrottled(deps, { reason: error.message, message: "the time up to which usage is counted is unknown" });
    return undefined;
  }
}
