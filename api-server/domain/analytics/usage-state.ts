import { EventsUnavailable } from "../../../edge/events/contract.ts";
import { QueryRefused } from "../../analytics/contract.ts";
import type { Deps } from "../../deps.ts";
import { noteRarely } from "../../note-rarely.ts";
import { type AnalyticsSettings, analyticsSettingsOf } from "./settings.ts";

/**
 * How long an event may be on its way into its stream: senders collect them for 200 ms, and a clock may differ a little. What is younger is never
 * called counted.
 */
const SENDING_MS = 1_000;

export interface UsageState extends AnalyticsSettings {
  /** Unix ms: events up to then are in the tables of counts. undefined when it cannot be told, because a store does not answer. */
  readonly countedUntilMs: number | undefined;
}

/** What a workspace may ask about its usage, and how far its usage is counted. Events that were lost on their way are in neither. */
export async function usageStateOf(
  deps: Pick<Deps, "db" | "analytics" | "eventStreams" | "nowMs" | "rarely" | "log">,
  workspaceId: string,
): Promise<UsageState> {
  const [settings, countedUntilMs] = await Promise.all([
    analyticsSettingsOf(deps.db, workspaceId),
    countedUntil(deps, workspaceId),
  ]);
  return { ...settings, countedUntilMs };
}

/** An event waits twice: in the stream of its workspace until it is stored, and on Postgres until a roll-up has added it to the counts. */
async function countedUntil(
  deps: Pick<Deps, "analytics" | "eventStreams" | "nowMs" | "rarely" | "log">,
  workspaceId: string,
): Promise<number | undefined> {
  const nowMs = deps.nowMs();
  try {
    const { depths, failed } = await deps.eventStreams.look([workspaceId]);
    if (failed.length > 0) return undefined;
    // Asked after the stream: an event that moves from one to the other in between is seen in both, not in none.
    const waitingMs = await deps.analytics.uncountedForMs(workspaceId);
    return nowMs - SENDING_MS - Math.max(0, waitingMs, ...depths.map(({ ageMs }) => ageMs));
  } catch (error) {
    if (!(error instanceof EventsUnavailable || error instanceof QueryRefused)) throw error;
    noteRarely(deps, { reason: error.message, message: "how far usage is counted is not known" });
    return undefined;
  }
}
