import type { EventSource, UsageEvent, VerificationEvent } from "../../../edge/events/contract.ts";
import { aName } from "./edges.ts";

export const anEvent = (event: Partial<VerificationEvent> = {}): VerificationEvent => ({
  type: "verification",
  id: aName("ev"),
  requestId: "req_1",
  timeMs: 1_700_000_000_000,
  workspaceId: "ws_1",
  keySpaceId: "ks_1",
  apiId: "api_1",
  keyId: "key_1",
  outcome: "VALID",
  tags: ["a=1"],
  region: "eu",
  source: "sidecar",
  spentCredits: 1,
  latencyMs: 1.25,
  ...event,
});

/** Takes all waiting events of these workspaces, portion by portion. */
export async function takeAll(source: EventSource, workspaceIds: readonly string[]): Promise<UsageEvent[]> {
  const taken: UsageEvent[] = [];
  for (const workspaceId of workspaceIds) {
    while ((await source.take(workspaceId, async (events) => void taken.push(...events))).entries > 0);
  }
  return taken;
}
