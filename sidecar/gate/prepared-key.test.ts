import { expect, it } from "vitest";
import type { IdentityRecord } from "../../core/verification/records.ts";
import { readEvent } from "../../edge/events/schema.ts";
import { verificationLine } from "../../edge/events/verification-line.ts";
import { aKeyView, anIdentityRecord } from "../../test/builders/key-view.ts";
import { prepareKey } from "./prepared-key.ts";

const view = (identity?: IdentityRecord) => aKeyView({ identity });
const decision = {
  id: "ev_a1",
  requestId: "req_a1",
  timeMs: 1_700_000_000_000,
  outcome: "VALID",
  tags: [],
  spentCredits: 2,
  latencyMs: 3,
};

it("an event is written as the ingester reads it, whatever the names in it", () => {
  const externalId = 'a "quoted"\n\\ name, ü';
  const line = verificationLine(prepareKey(view(anIdentityRecord({ externalId })), "eu").eventSubject, decision);
  expect(line).not.toContain("\n");
  expect(readEvent(line, "ws_2")).toEqual({
    type: "verification",
    id: "ev_a1",
    requestId: "req_a1",
    timeMs: 1_700_000_000_000,
    workspaceId: "ws_2",
    keySpaceId: "ks_4",
    apiId: "api_9",
    keyId: "key_7",
    identityId: "id_5",
    externalId,
    outcome: "VALID",
    tags: [],
    region: "eu",
    source: "sidecar",
    spentCredits: 2,
    latencyMs: 3,
  });
});

it("without an identity the event names none", () => {
  const event = readEvent(verificationLine(prepareKey(view(), "").eventSubject, decision), "ws_2");
  expect(event).toBeDefined();
  expect(event).not.toHaveProperty("externalId");
});

it("a key is prepared once", () => {
  const one = view();
  expect(prepareKey(one, "eu")).toBe(prepareKey(one, "eu"));
});
