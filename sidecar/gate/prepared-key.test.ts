import { expect, it } from "vitest";
import { buildKeyView } from "../../core/verification/key-view.ts";
import type { ApiRecord, IdentityRecord, KeyRecord, WorkspaceRecord } from "../../core/verification/records.ts";
import { readEvent } from "../../edge/events/schema.ts";
import { verificationLine } from "../../edge/events/verification-line.ts";
import { prepareKey } from "./prepared-key.ts";

const key = { workspaceId: "ws_1", keySpaceId: "ks_1", apiId: "api_1", keyId: "key_1", permissions: [] as string[] };
const view = (identity?: Pick<IdentityRecord, "id" | "externalId">) =>
  buildKeyView({
    key: key as unknown as KeyRecord,
    workspace: {} as WorkspaceRecord,
    api: {} as ApiRecord,
    identity: identity as IdentityRecord | undefined,
    roles: [],
  });
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
  const line = verificationLine(prepareKey(view({ id: "id_1", externalId }), "eu").eventSubject, decision);
  expect(line).not.toContain("\n");
  expect(readEvent(line, "ws_1")).toEqual({
    type: "verification",
    id: "ev_a1",
    requestId: "req_a1",
    timeMs: 1_700_000_000_000,
    workspaceId: "ws_1",
    keySpaceId: "ks_1",
    apiId: "api_1",
    keyId: "key_1",
    identityId: "id_1",
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
  const event = readEvent(verificationLine(prepareKey(view(), "").eventSubject, decision), "ws_1");
  expect(event).toBeDefined();
  expect(event).not.toHaveProperty("externalId");
});

it("a key is prepared once", () => {
  const one = view();
  expect(prepareKey(one, "eu")).toBe(prepareKey(one, "eu"));
});
