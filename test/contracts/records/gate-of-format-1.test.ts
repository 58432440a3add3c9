import { afterEach, expect, test, vi } from "vitest";
import { aRule, call, openGate, POLICY, type TestGate, WORKSPACE, waitFor, withKey } from "../../harness/gate.ts";
import { readFrozenRecords } from "./frozen.ts";

/* A gate that knows only format 1: the earlier version differs from this one in the formats that it accepts. */

vi.mock(import("../../../core/policies/policy.ts"), async (original) => ({
  ...(await original()),
  POLICY_FORMAT_VERSION: 1 as 2,
}));

let gate: TestGate;
afterEach(() => gate.close());

test("gate that knows only format 1 keeps its policy when one of format 2 arrives, and reports it", async () => {
  gate = await openGate({ policy: { rules: [aRule({ path: { prefix: "/open" }, access: "Anonymous" })] } });
  const key = await gate.records.putKey();
  const statuses = () =>
    Promise.all(
      [{ path: "/open" }, { path: "/catalogue" }, withKey(key), { path: "/internal", ...withKey(key) }].map(
        async (one) => (await call(gate.port, one)).status,
      ),
    );
  const before = await statuses();
  expect(before).toEqual([200, 401, 200, 200]);
  const readyz = async () => JSON.parse((await gate.readyz()).body);
  const reason = "format 2 is not known here, where 1 is the highest";
  for (const record of readFrozenRecords("0.1.0", "policy2")) {
    await gate.records.putStoredPolicy((record as { policy: unknown }).policy);
    await waitFor("the gate to refuse it", async () => (await readyz()).refused !== null);
    expect(await readyz()).toMatchObject({ policy: { generation: 1 }, refused: { generation: 2, reason } });
    expect(await statuses()).toEqual(before);
    expect(await gate.metrics()).toContain("postern_sidecar_policy_unsupported 1");
    const reports = () => gate.edge.pods.list({ workspaceId: WORKSPACE, policyId: POLICY });
    await waitFor("the pod to report it", async () => (await reports())[0]?.refused !== undefined);
    expect(await reports()).toMatchObject([{ generation: 1, refused: { version: 2, reason } }]);
  }
});
