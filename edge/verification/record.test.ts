import { expect, it } from "vitest";
import type { IdentityRecord } from "../../core/records.ts";
import { type KeyParts, KeyView } from "../../core/verification/key-view.ts";
import type { LineSink } from "../events/contract.ts";
import { readEvent } from "../events/schema.ts";
import { deciderJson } from "../events/verification-line.ts";
import { recordVerification } from "./record.ts";

const key = { workspaceId: "ws_1", keySpaceId: "ks_1", apiId: "api_1", keyId: "key_1", permissions: [] as string[] };
const view = (identity?: Pick<IdentityRecord, "id" | "externalId">) =>
  new KeyView({ key, workspace: {}, api: {}, identity, roles: [] } as unknown as KeyParts);
const decision = {
  id: "ev_a1",
  requestId: "req_a1",
  timeMs: 1_700_000_000_000,
  outcome: "VALID",
  tags: [],
  spentCredits: 2,
  latencyMs: 3,
};

function lineOf(of: KeyView, region = "eu"): string {
  const lines: string[] = [];
  const events = { addLine: (_workspaceId: string, line: string) => void lines.push(line) } as unknown as LineSink;
  recordVerification({ events, decidedBy: deciderJson({ region, source: "sidecar" }) }, of, decision);
  return lines[0] ?? "";
}

it("a verification event with any names is parsed by the ingester as it was written", () => {
  const externalId = 'a "quoted"\n\\ name, ü';
  const line = lineOf(view({ id: "id_1", externalId }));
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

it("a verification event without an identity has no identity members", () => {
  const event = readEvent(lineOf(view()), "ws_1");
  expect(event).toBeDefined();
  expect(event).not.toHaveProperty("externalId");
});

it("members that all events of a key share are cached, and each process adds its id", () => {
  const one = view();
  const [here, there] = [lineOf(one), lineOf(one, "us")].map((line) => readEvent(line, "ws_1"));
  expect([here, there]).toMatchObject([{ region: "eu" }, { region: "us" }]);
});
