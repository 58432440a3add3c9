import type { EventSource, UsageEvent, VerificationEvent } from "../../../edge/events/contract.ts";
import { aVerificationEvent } from "../../builders/usage-event.ts";
import { aName } from "./edges.ts";

export const anEvent = (event: Partial<VerificationEvent> = {}): VerificationEvent =>
  aVerificationEvent({
    id: aName("ev"),
    timeMs: 1_700_000_000_000,
    workspaceId: "ws_1",
    tags: ["a=1"],
    region: "eu",
    latencyMs: 1.25,
    ...event,
  });

/** Takes all pending events of these workspaces batch by batch. */
export async function takeAll(source: EventSource, workspaceIds: readonly string[]): Promise<UsageEvent[]> {
  const taken: UsageEvent[] = [];
  for (const workspaceId of workspaceIds) {
    while ((await source.take(workspaceId, async (events) => void taken.push(...events))).entries > 0);
  }
  return taken;
}
