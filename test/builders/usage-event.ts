import type { RatelimitEvent, VerificationEvent } from "../../edge/events/contract.ts";

/* Builders of usage events, each with a unique id. */

let made = 0;

/** Returns an allowed verification of one key. The test chooses `timeMs`, because ingesters accept only current times. */
export const aVerificationEvent = (
  given: Pick<VerificationEvent, "timeMs"> & Partial<VerificationEvent>,
): VerificationEvent => ({
  type: "verification",
  id: `ev_${made++}`,
  requestId: "req_1",
  workspaceId: "ws_a",
  keySpaceId: "ks_1",
  apiId: "api_1",
  keyId: "key_1",
  outcome: "VALID",
  tags: [],
  region: "",
  source: "sidecar",
  spentCredits: 1,
  latencyMs: 0.5,
  ...given,
});

/** Returns an allowed rate limit call. */
export const aRatelimitEvent = (given: Pick<RatelimitEvent, "timeMs"> & Partial<RatelimitEvent>): RatelimitEvent => ({
  type: "ratelimit",
  id: `ev_${made++}`,
  requestId: "req_2",
  workspaceId: "ws_a",
  namespaceId: "rlns_1",
  identifier: "user",
  passed: true,
  latencyMs: 1,
  limit: 10,
  remaining: 9,
  resetMs: given.timeMs + 1000,
  cost: 1,
  ...given,
});
