import pino from "pino";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createMemoryEdge, type Edge } from "../../edge/open.ts";
import {
  aPolicy,
  aRule,
  call,
  kindOf,
  openGate,
  POLICY,
  type TestGate,
  WORKSPACE,
  waitFor,
  withKey,
} from "../../test/harness/gate.ts";

/* Behavior of a gate whose data is stale, missing or deleted: the table of docs/operations/failure-modes.md. */

let gate: TestGate;
afterEach(() => gate.close());

const status = async (key: string, path = "/") => (await call(gate.port, { path, ...withKey(key) })).status;

/** Returns an edge whose clock the test controls. */
function movableEdge(): { edge: Edge; move: (ms: number) => void } {
  let offsetMs = 0;
  const edge = createMemoryEdge({ nowMs: () => Date.now() + offsetMs });
  return {
    edge,
    move: (ms) => {
      offsetMs += ms;
    },
  };
}

/** Opens a gate with a single, old heartbeat. Its age is constant, except for the duration of the test. */
async function openAged(onStale: { action: "Serve" | "Deny" }) {
  const { edge, move } = movableEdge();
  gate = await openGate({ edge, policy: { onStale: { afterMs: 30_000, denyAfterMs: 900_000, ...onStale } } });
  const key = await gate.records.putKey();
  expect(await status(key)).toBe(200);
  return { key, move };
}

describe("staleness exceeds the first bound", () => {
  test("onStale.action Serve serves cached keys when data is stale and rejects others with 503", async () => {
    const { key, move } = await openAged({ action: "Serve" });
    move(31_000);
    expect(await status(key)).toBe(200);
    const unknown = await call(gate.port, withKey("unknown"));
    expect([unknown.status, unknown.headers["retry-after"], kindOf(unknown)]).toEqual([
      503,
      "1",
      "verification_unavailable",
    ]);
    expect(await status("")).toBe(503);
    expect((await call(gate.port)).status).toBe(401);
    expect(await gate.metrics()).toMatch(/postern_sidecar_stale_decisions_total [1-9]/);
    const ready = await gate.readyz();
    expect([ready.status, JSON.parse(ready.body).freshness]).toEqual([200, "Stale"]);
    await gate.records.heartbeat();
    expect(await status("unknown")).toBe(401);
  });

  test("onStale.action Deny responds 503 with Retry-After and makes the gate unready", async () => {
    const { key, move } = await openAged({ action: "Deny" });
    move(31_000);
    const refused = await call(gate.port, withKey(key));
    expect([refused.status, refused.headers["retry-after"]]).toEqual([503, "1"]);
    expect((await gate.readyz()).status).toBe(503);
    await gate.records.heartbeat();
    expect(await status(key)).toBe(200);
  });
});

test("gate is unready and denies every request when data exceeds the maximum staleness", async () => {
  const { key, move } = await openAged({ action: "Serve" });
  move(901_000);
  expect(await status(key)).toBe(503);
  const ready = await gate.readyz();
  expect([ready.status, JSON.parse(ready.body).freshness]).toEqual([503, "Expired"]);
});

test("gate enforces a changed key from the next request on", async () => {
  gate = await openGate();
  const key = await gate.records.putKey();
  expect(await status(key)).toBe(200);
  await gate.records.putKey({ enabled: false }, key);
  expect(await status(key)).toBe(401);
});

test("gate responds 503 instead of 401 to an unknown key during a new projection", async () => {
  gate = await openGate({ ready: false });
  await gate.records.putPolicy(aPolicy());
  await waitFor("the policy", async () => (await gate.readyz()).status === 200);
  await gate.edge.writer.begin("projection-2", [WORKSPACE]);
  const refused = await call(gate.port, withKey("not-yet"));
  expect([refused.status, refused.headers["retry-after"]]).toEqual([503, "1"]);
});

describe("the policy", () => {
  test("gate is unready and responds 503 until its policy is available", async () => {
    gate = await openGate({ ready: false });
    const key = await gate.records.putKey();
    const before = await call(gate.port, withKey(key));
    expect([before.status, before.headers["retry-after"], kindOf(before)]).toEqual([
      503,
      "1",
      "verification_unavailable",
    ]);
    expect((await gate.readyz()).status).toBe(503);
    await gate.records.putPolicy(aPolicy());
    await waitFor("the policy to be in force", async () => (await status(key)) === 200);
    expect((await gate.readyz()).status).toBe(200);
  });

  test("a policy update is atomic: each request uses exactly one version", async () => {
    gate = await openGate({ policy: { rules: [aRule({ path: { prefix: "/a" }, access: "Anonymous" })] } });
    const both = async () => [
      (await call(gate.port, { path: "/a" })).status,
      (await call(gate.port, { path: "/b" })).status,
    ];
    expect(await both()).toEqual([200, 401]);
    await gate.records.putPolicy(aPolicy({ rules: [aRule({ path: { prefix: "/b" }, access: "Anonymous" })] }));
    await waitFor("the new policy", async () => String(await both()) === "401,200");
  });

  test("gate keeps a deleted policy active and reports the deletion", async () => {
    gate = await openGate();
    const key = await gate.records.putKey();
    await gate.records.deletePolicy();
    await waitFor("the gate to know", async () => JSON.parse((await gate.readyz()).body).policy.gone === true);
    expect([await status(key), (await call(gate.port)).status]).toEqual([200, 401]);
    expect(await gate.metrics()).toContain("postern_sidecar_policy_deleted 1");
    await gate.records.putPolicy(aPolicy({ rules: [aRule({ access: "Anonymous" })] }));
    await waitFor("the policy to be back", async () => (await call(gate.port)).status === 200);
    expect(JSON.parse((await gate.readyz()).body).policy).toMatchObject({ gone: false, generation: 2 });
  });

  test("gate keeps its active policy when a new version is invalid", async () => {
    gate = await openGate();
    const key = await gate.records.putKey();
    await gate.records.putUnreadablePolicy();
    for (let i = 0; i < 5; i++) expect([await status(key), (await call(gate.port)).status]).toEqual([200, 401]);
    await waitFor("the gate to say so", async () => JSON.parse((await gate.readyz()).body).refused !== null);
    expect((await gate.readyz()).status).toBe(200);
    await gate.records.putPolicy(aPolicy({ rules: [aRule({ access: "Anonymous" })] }));
    await waitFor("the next policy", async () => (await call(gate.port)).status === 200);
    expect(JSON.parse((await gate.readyz()).body).refused).toBeNull();
  });

  describe("a policy from another version of Postern", () => {
    /** A policy of a later version: all rules Anonymous, under a condition that this version does not know. */
    const later = { ...aPolicy({ rules: [aRule({ access: "Anonymous" })] }), formatVersion: 3, condition: "at night" };
    const lines: Array<{ level: number; msg: string; reason?: string }> = [];
    const logger = pino({ level: "info" }, { write: (line: string) => void lines.push(JSON.parse(line)) });
    const refusals = () => lines.filter(({ reason }) => reason !== undefined);
    beforeEach(() => {
      lines.length = 0;
    });
    const refused = async () => JSON.parse((await gate.readyz()).body).refused;

    test("gate enforces a policy that has unknown members or omits members with defaults", async () => {
      gate = await openGate();
      const key = await gate.records.putKey();
      const rule = { access: "Anonymous", path: { prefix: "/open", later: 1 }, ratelimits: [], later: { deep: true } };
      const { mode: _, onStale: __, allowPaths: ___, ...policy } = aPolicy();
      await gate.records.putStoredPolicy({ ...policy, rules: [rule], later: "member" });
      await waitFor("the policy", async () => (await call(gate.port, { path: "/open" })).status === 200);
      expect([await status(key), (await call(gate.port)).status]).toEqual([200, 401]);
      expect(await refused()).toBeNull();
      expect(await gate.metrics()).toContain("postern_sidecar_policy_unsupported 0");
    });

    test("gate keeps its policy when a new one has an unknown format, and reports the new one", async () => {
      gate = await openGate({ config: { logger } });
      const key = await gate.records.putKey();
      await gate.records.putStoredPolicy(later);
      await waitFor("the gate to refuse it", async () => (await refused()) !== null);
      expect(await refused()).toEqual({
        generation: 2,
        version: 2,
        reason: "format 3 is not known here, where 2 is the highest",
      });
      expect([await status(key), (await call(gate.port)).status]).toEqual([200, 401]);
      expect((await gate.readyz()).status).toBe(200);
      expect(await gate.metrics()).toContain("postern_sidecar_policy_unsupported 1");
      // A reset makes the gate read the policy again, unchanged.
      await gate.records.begin("projection-2");
      await gate.records.putStoredPolicy(later);
      await gate.records.putKey({}, key);
      await gate.records.complete();
      await waitFor("the new version", async () => (await refused())?.version === 3);
      await gate.caughtUp();
      expect(refusals()).toMatchObject([
        { level: 50, version: 2, activeVersion: 1 },
        { level: 50, version: 3, activeVersion: 1 },
      ]);
      await gate.records.putPolicy(aPolicy({ rules: [aRule({ access: "Anonymous" })] }));
      await waitFor("the next policy", async () => (await call(gate.port)).status === 200);
      expect(await refused()).toBeNull();
      expect(await gate.metrics()).toContain("postern_sidecar_policy_unsupported 0");
      expect(refusals()).toHaveLength(2);
    });

    test("gate rejects requests and is unready when its only policy has an unknown format", async () => {
      gate = await openGate({ ready: false, config: { logger } });
      const key = await gate.records.putKey();
      await gate.records.putStoredPolicy(later);
      await waitFor("the gate to refuse it", async () => (await refused()) !== null);
      expect((await gate.readyz()).status).toBe(503);
      expect(JSON.parse((await gate.readyz()).body)).toMatchObject({
        policy: null,
        refused: { version: 1, reason: "format 3 is not known here, where 2 is the highest" },
      });
      expect([await status(key), (await call(gate.port)).status]).toEqual([503, 503]);
      expect(refusals()).toHaveLength(1);
      const reports = () => gate.edge.pods.list({ workspaceId: WORKSPACE, policyId: POLICY });
      await waitFor("the pod to report it", async () => (await reports()).length === 1);
      const reason = "format 3 is not known here, where 2 is the highest";
      expect(await reports()).toMatchObject([{ generation: 0, version: 0, refused: { version: 1, reason } }]);
      await gate.records.putPolicy(aPolicy());
      await waitFor("a policy that is known", async () => (await status(key)) === 200);
      expect((await gate.readyz()).status).toBe(200);
      await waitFor("the pod to report that", async () => (await reports())[0]?.version === 2);
      expect((await reports())[0]).not.toHaveProperty("refused");
    });

    test("gate keeps its policy when a new one has an unsupported permission query", async () => {
      gate = await openGate();
      const key = await gate.records.putKey({ permissions: ["a"] });
      await gate.records.putStoredPolicy({ ...aPolicy(), rules: [{ permissions: "a BUT b", ratelimits: [] }] });
      await waitFor("the gate to refuse it", async () => (await refused()) !== null);
      expect(await status(key)).toBe(200);
    });
  });

  test("gate reports its active policy on change and withdraws the report at shutdown", async () => {
    gate = await openGate({ timeouts: { reportMs: 60_000 } });
    const ref = { workspaceId: WORKSPACE, policyId: POLICY };
    const version = async () => (await gate.edge.pods.list(ref)).map((pod) => [pod.podId, pod.version, pod.generation]);
    await waitFor("the first report", async () => String(await version()) === "pod-1,1,1");
    await gate.records.putPolicy(aPolicy());
    await waitFor("the second", async () => String(await version()) === "pod-1,2,2");
    await gate.sidecar.close();
    expect(await version()).toEqual([]);
  });
});
