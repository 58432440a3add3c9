import { expect, test } from "vitest";
import { ApiKeyPolicySpec } from "../../../core/manifests/api-key-policy.ts";
import { anObject, managerOfIt } from "../../test/builders.ts";
import { aPodSummary } from "../../test/seen-pods.ts";
import { stalled } from "../plan.ts";
import { parseSpec } from "../spec.ts";
import { heldConditions } from "./held.ts";
import type { ObservedPolicy, StoredPolicy } from "./observed.ts";
import { selectedBy } from "./selection.ts";

const verdict = stalled("NotAllowed", "The API belongs to another.");
const spec = { api: { name: "orders" }, target: { port: 8080 }, selector: { matchLabels: { app: "orders" } } };

const aStored = (more: Partial<StoredPolicy> = {}): StoredPolicy => ({
  ...{ policyId: "pol_1", workspaceId: "ws_1", apiId: "api_1", name: "test/shop/it" },
  ...{ uid: "uid-of-it", generation: 3, version: 12, manager: managerOfIt("ApiKeyPolicy") },
  onStale: { afterMs: 30_000, action: "Serve", denyAfterMs: 900_000 },
  dataPlane: { pods: 1, updated: 1, maxStalenessMs: 1, podIds: ["shop/a"] },
  ...more,
});

function observe(stored: StoredPolicy | undefined, more: Partial<ObservedPolicy> = {}): ObservedPolicy {
  const object = anObject("ApiKeyPolicy", spec, { generation: 4 });
  return {
    ...{ object, stored, parsed: parseSpec(ApiKeyPolicySpec, object) },
    ...{ selected: selectedBy(object, [aPodSummary("a")], [object]), network: [], services: [], previous: [] },
    ...{ named: [], heard: new Map() },
    ...{ nowMs: 0, seenAtMs: 0, pollId: 1 },
    ...more,
  };
}

const enforcedOf = (observed?: ObservedPolicy) =>
  heldConditions(verdict, observed).find(({ type }) => type === "Enforced");

test("Enforced condition of a rejected spec names the generation that stays active and the pods that enforce it", () => {
  expect(enforcedOf(observe(aStored()))).toMatchObject({
    status: "False",
    reason: "NotAllowed",
    message: "Generation 3 (version 12) remains active until this generation is accepted.",
  });
  const bare = observe(aStored());
  const selected = selectedBy(bare.object, [aPodSummary("a"), aPodSummary("b", { gate: undefined })], [bare.object]);
  expect(enforcedOf({ ...bare, selected })?.message).toContain("accepted, though not at all pods (UnguardedPods).");
});

test("Enforced condition of a rejected spec distinguishes generations of a recreated object", () => {
  expect(enforcedOf(observe(aStored({ uid: "uid-of-the-former", generation: 4 })))?.message).toBe(
    "The policy of a previous object with this name (version 12) remains active until this generation is accepted.",
  );
});

test("Enforced condition of a rejected spec relies on gate reports when this generation is still active", () => {
  expect(enforcedOf(observe(aStored({ generation: 4 })))).toMatchObject({
    status: "True",
    message: expect.stringContaining("as it was stored (version 12)"),
  });
  const behind = aStored({ generation: 4, dataPlane: { pods: 1, updated: 0, maxStalenessMs: 1, podIds: ["shop/a"] } });
  expect(enforcedOf(observe(behind))).toMatchObject({ status: "False", reason: "Progressing" });
});

test("Enforced condition of a rejected spec mentions pods that an older policy guards", () => {
  const one = observe(aStored({ generation: 4 }));
  const older = anObject("ApiKeyPolicy", spec, { name: "older", creationTimestamp: "2025-01-01T00:00:00Z" });
  const theirs = aPodSummary("b", { policy: "older" });
  const selected = selectedBy(one.object, [aPodSummary("a"), theirs], [one.object, older]);
  expect(enforcedOf({ ...one, selected })).toMatchObject({ status: "False", reason: "NotAllowed" });
});

test("Enforced condition of a rejected spec reports a missing policy", () => {
  expect(enforcedOf(observe(undefined))?.message).toBe("No generation of this policy has been active yet.");
});

test("Enforced condition of a rejected spec makes no claim when the API was not read", () => {
  expect(heldConditions(verdict).map(({ type, status }) => [type, status])).toEqual([
    ["Accepted", "False"],
    ["Enforced", "False"],
  ]);
  const away = { state: "Progressing", reason: "ApiUnavailable", message: "away" } as const;
  expect(heldConditions(away).map(({ status }) => status)).toEqual(["Unknown", "Unknown"]);
});
