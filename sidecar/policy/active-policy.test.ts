import { afterEach, expect, test } from "vitest";
import { planRule } from "../../core/policies/plan-rule.ts";
import { aPolicy, aRule, call, openGate, type TestGate, WORKSPACE, withKey } from "../../test/harness/gate.ts";
import { readPolicy } from "./active-policy.ts";

let gate: TestGate;
afterEach(() => gate.close());

test("metric counts requests that share a counter because their client has used over 1,000 identifiers", async () => {
  gate = await openGate();
  const read = async () =>
    Number(/^postern_sidecar_shared_identifier_requests_total (\d+)$/m.exec(await gate.metrics())?.[1]);
  const by = ["address", "header.x-tenant"];
  const limit = { by, limit: 5, durationMs: 86_400_000, cost: 1, accuracy: "strict" } as const;
  const ratelimits = [{ ...limit, by, scope: { kind: "name", name: "guests" } as const }];
  const policy = aPolicy({ formatVersion: 2, rules: [aRule({ access: "Anonymous", ratelimits })] });
  const active = readPolicy({ policyId: "pol_1", name: "a/b/c", generation: 1, version: 1, policy } as never);
  if ("problem" in active) throw new Error(active.problem);
  const send = (from: number, to: number) => {
    for (let tenant = from; tenant < to; tenant++) {
      const found = active.rules.match({ method: "GET", target: "/", host: "", headers: [`${tenant}`] });
      if ("refused" in found) throw new Error(found.refused);
      const head = { host: "", ruleHeaders: [`${tenant}`] };
      const request = { method: "GET", path: "/", address: "192.0.2.1", head };
      planRule(undefined, found.rule, { workspaceId: WORKSPACE, request, audit: false });
    }
  };
  const before = await read();
  send(0, 1_000);
  expect(await read()).toBe(before);
  send(0, 1_007);
  expect(await read()).toBe(before + 7);
});

test("metric counts rejections by the name or the number of the rule", async () => {
  const rules = [
    aRule({ path: { prefix: "/open" }, access: "Anonymous" }),
    aRule({ name: "internal", path: { prefix: "/internal" }, access: "Deny" }),
    aRule({ path: { prefix: "/orders" }, permissions: "orders.read" }),
  ];
  gate = await openGate({ policy: { formatVersion: 2, rules } });
  const key = await gate.records.putKey();
  for (const path of ["/open", "/internal", "/internal/a", "/orders", "/else", "/a//b"]) {
    await call(gate.port, { path, ...(path === "/orders" ? withKey(key) : {}) });
  }
  const lines = (await gate.metrics())
    .split("\n")
    .filter((line) => line.startsWith("postern_sidecar_rejections_total{"));
  expect(lines.sort()).toEqual([
    'postern_sidecar_rejections_total{code="DENIED",rule="internal"} 2',
    'postern_sidecar_rejections_total{code="INSUFFICIENT_PERMISSIONS",rule="3"} 1',
    'postern_sidecar_rejections_total{code="MALFORMED",rule="none"} 1',
    'postern_sidecar_rejections_total{code="MISSING_KEY",rule="default"} 1',
  ]);
});
