import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { policyIdOf } from "../../../core/policies/policy-id.ts";
import { buildTestApp, type Reply, type TestApp } from "../../test/app.ts";

let api: TestApp;
let apiId: string;
beforeAll(async () => {
  api = await buildTestApp();
  apiId = (await api.data("apis.createApi", { name: "orders" })).apiId;
});
afterAll(() => api.close());

const kindOf = (reply: Reply): string => reply.body.error.type.split("/").at(-1);
const auditOf = async (id: string) => (await api.audit()).filter(({ targets }) => targets.some((one) => one.id === id));
let count = 0;

const aRule = { access: "Key", creditCost: 1, ratelimits: [] };
const aPolicy = (change: object = {}) => ({
  formatVersion: 1,
  apiId,
  mode: "Enforce",
  credentials: [{ in: "header", name: "Authorization", scheme: "Bearer" }],
  rules: [aRule],
  onStale: { afterMs: 30_000, action: "Serve", denyAfterMs: 900_000 },
  onCounterFailure: "Local",
  onCreditFailure: "Deny",
  allowPaths: [],
  ...change,
});
const aBody = (change: object = {}) => ({
  apiId,
  name: `main/shop/p${++count}`,
  uid: "uid-1",
  generation: 1,
  policy: aPolicy(),
  ...change,
});

describe("setPolicy", () => {
  test("setPolicy stores a policy that getPolicy returns by id and name", async () => {
    const scopes = [
      { kind: "name", name: "writes" },
      { kind: "namespace", namespaceId: "rlns_1" },
    ];
    const ratelimits = scopes.map((scope, i) => ({
      scope,
      identifier: ["key", "identity"][i],
      limit: i,
      durationMs: 1000,
      cost: i,
      accuracy: ["strict", "local"][i],
    }));
    const policy = aPolicy({
      credentials: [
        { in: "header", name: "Authorization", scheme: "Bearer" },
        { in: "header", name: "X-API-Key" },
        { in: "query", name: "key" },
      ],
      rules: [
        { ...aRule, methods: ["GET", "HEAD"], path: { prefix: "/healthz" }, access: "Anonymous" },
        { ...aRule, path: { exact: "/orders" }, permissions: "a OR (b AND c.*)", creditCost: 0, ratelimits },
        aRule,
      ],
      clientAddress: { from: "forwardedFor", trustedProxies: ["10.0.0.0/8"] },
      allowPaths: ["EncodedSlash", "Semicolon"],
    });
    const body = aBody({ name: "main/shop/orders", policy });
    const { policyId, version } = await api.data("policies.setPolicy", body);
    expect(policyId).toMatch(/^pol_[a-zA-Z0-9]{16}$/);
    expect(version).toBe(1);
    const expected = {
      policyId,
      workspaceId: api.workspace.id,
      apiId,
      name: body.name,
      uid: "uid-1",
      generation: 1,
      version: 1,
      dataPlane: { pods: 0, updated: 0, maxStalenessMs: 0 },
      policy: body.policy,
    };
    expect(await api.data("policies.getPolicy", { policyId })).toEqual(expected);
    expect(await api.data("policies.getPolicy", { apiId, name: body.name })).toEqual(expected);
    expect(await auditOf(policyId)).toMatchObject([{ event: "policy.create" }]);
  });

  test("audit log has the names of changed rules, and setPolicy rejects names that no header can carry", async () => {
    const body = aBody();
    const { policyId } = await api.data("policies.setPolicy", body);
    const named = (name: string) => ({ ...body, policy: aPolicy({ formatVersion: 2, rules: [{ ...aRule, name }] }) });
    await api.data("policies.setPolicy", named("refund"));
    const rows = await api.data("admin.listAudit", { event: "policy.update" });
    const logged = rows.filter(({ targets }: { targets: { id: string }[] }) => targets[0]?.id === policyId);
    expect(logged).toMatchObject([{ before: { rules: [aRule] }, after: { rules: [{ name: "refund" }] } }]);
    for (const name of ['a"b', "a\r\nB: c", "Refund", "-a", ""]) {
      expect((await api.call("policies.setPolicy", named(name))).status).toBe(400);
    }
  });

  test("setPolicy with an equal policy changes nothing, otherwise increments the version", async () => {
    const body = aBody();
    const { policyId } = await api.data("policies.setPolicy", body);
    expect(await api.data("policies.setPolicy", body)).toEqual({ policyId, version: 1 });
    expect(await api.data("policies.setPolicy", { ...body, generation: 2 })).toEqual({ policyId, version: 2 });
    const changed = { ...body, generation: 2, policy: aPolicy({ mode: "Audit" }) };
    expect(await api.data("policies.setPolicy", changed)).toEqual({ policyId, version: 3 });
    expect((await auditOf(policyId)).map(({ event }) => event).sort()).toEqual([
      "policy.create",
      "policy.update",
      "policy.update",
    ]);
  });

  test("setPolicy rejects an older generation of one uid and accepts another uid", async () => {
    const body = aBody({ generation: 5 });
    const { policyId } = await api.data("policies.setPolicy", body);
    const reply = await api.call("policies.setPolicy", { ...body, generation: 4 });
    expect(reply.status).toBe(409);
    expect(reply.body.error.title).toBe("Conflicting Resource");
    expect(kindOf(reply)).toBe("stale_policy_generation");
    const other = { ...body, uid: "uid-2", generation: 1 };
    expect(await api.data("policies.setPolicy", other)).toEqual({ policyId, version: 2 });
  });

  test("100 concurrent setPolicy calls keep the newest generation", async () => {
    const body = aBody();
    const replies = await Promise.all(
      Array.from({ length: 100 }, (_, i) => api.call("policies.setPolicy", { ...body, generation: i + 1 })),
    );
    const made = replies.filter(({ status }) => status === 200);
    expect(new Set(made.map((reply) => reply.body.data.policyId)).size).toBe(1);
    expect(
      replies.filter(({ status }) => status !== 200).every((reply) => kindOf(reply) === "stale_policy_generation"),
    ).toBe(true);
    const { policyId } = made[0]?.body.data ?? {};
    expect(await api.data("policies.getPolicy", { policyId })).toMatchObject({ generation: 100, version: made.length });
  });

  test.each([
    {
      name: "a rule with a query that does not parse",
      change: { rules: [aRule, { ...aRule, permissions: "a AND" }] },
      at: "body.policy.rules[1].permissions",
    },
    { name: "another API's policy", change: { apiId: "api_somethingElse" }, at: "body.policy.apiId" },
    { name: "an unknown field", change: { extra: 1 }, at: "body.policy.extra" },
    { name: "no credentials", change: { credentials: [] }, at: "body.policy.credentials" },
    { name: "a wrong type", change: { rules: [{ ...aRule, creditCost: "1" }] }, at: "body.policy.rules[0].creditCost" },
    { name: "257 rules", change: { rules: Array(257).fill(aRule) }, at: "body.policy.rules" },
    { name: "an unknown mode", change: { mode: "Off" }, at: "body.policy.mode" },
  ])("setPolicy rejects $name", async ({ change, at }) => {
    const reply = await api.call("policies.setPolicy", aBody({ policy: aPolicy(change) }));
    expect(reply.status).toBe(400);
    expect(reply.body.error.errors.map(({ location }: { location: string }) => location)).toContain(at);
  });

  test("setPolicy accepts a policy of up to 256 KiB", async () => {
    const query = (length: number) => "p".repeat(length);
    const rules = Array.from({ length: 245 }, () => ({ ...aRule, permissions: query(1000) }));
    const size = (policy: object) => Buffer.byteLength(JSON.stringify(policy));
    const room = 262_144 - size(aPolicy({ rules: [...rules, { ...aRule, permissions: "" }] }));
    expect(room).toBeGreaterThan(0);
    expect(room).toBeLessThan(1000);
    const full = aPolicy({ rules: [...rules, { ...aRule, permissions: query(room) }] });
    expect((await api.call("policies.setPolicy", aBody({ policy: full }))).status).toBe(200);
    const over = aPolicy({ rules: [...rules, { ...aRule, permissions: query(room + 1) }] });
    const reply = await api.call("policies.setPolicy", aBody({ policy: over }));
    expect(reply.status).toBe(400);
    expect(reply.body.error.errors[0].location).toBe("body.policy");
  });

  test.each([
    { field: "name", value: "shop/orders" },
    { field: "name", value: "a/b/c/d" },
    { field: "name", value: "a//c" },
    { field: "name", value: `a/b/${"c".repeat(254)}` },
    { field: "uid", value: "" },
    { field: "generation", value: 0 },
    { field: "apiId", value: "short" },
  ])("setPolicy rejects the value $value of $field", async ({ field, value }) => {
    const reply = await api.call("policies.setPolicy", aBody({ [field]: value }));
    expect(reply.status).toBe(400);
    expect(reply.body.error.errors[0].location).toBe(`body.${field}`);
  });

  test("setPolicy checks for 404 before 403, and responds alike for missing and foreign APIs", async () => {
    const rootKey = await api.rootKey(["api.*.read_api"]);
    const other = await api.makeWorkspace();
    const foreign = (await api.data("apis.createApi", { name: "theirs" }, { rootKey: other.rootKey })).apiId;
    const ask = async (id: string) => {
      const reply = await api.call("policies.setPolicy", aBody({ apiId: id, policy: aPolicy({ apiId: id }) }), {
        rootKey,
      });
      expect(reply.status).toBe(404);
      return JSON.stringify(reply.body.error).replaceAll(id, "ID");
    };
    const deleted = (await api.data("apis.createApi", { name: "gone" })).apiId;
    await api.data("apis.deleteApi", { apiId: deleted });
    expect(new Set([await ask(foreign), await ask("api_missing1"), await ask(deleted)]).size).toBe(1);
    const reply = await api.call("policies.setPolicy", aBody(), { rootKey });
    expect(reply.status).toBe(403);
    expect(reply.body.error.detail).toContain(`api.*.update_api or api.${apiId}.update_api`);
  });
});

describe("the id of a managed policy", () => {
  const managerOf = ({ name }: { name: string }) => name.replace("/", "/ApiKeyPolicy/");
  const set = async (
    body: ReturnType<typeof aBody>,
    manager: string | undefined,
    more: Record<string, string> = {},
  ) => {
    const headers = { ...(manager === undefined ? {} : { "postern-manager": manager }), ...more };
    return await api.data("policies.setPolicy", body, { headers });
  };
  const idOf = (manager: string) => policyIdOf({ workspaceId: api.workspace.id, manager });
  const adopt = { "postern-adopt": "true" };
  const release = { "postern-release": "true" };

  test("managed policy id is derived from workspace and manager, and is the same after recreation", async () => {
    const body = aBody();
    const manager = managerOf(body);
    expect(await set(body, manager)).toEqual({ policyId: idOf(manager), version: 1 });
    await set({ ...body, generation: 2 }, manager);
    await api.data("policies.deletePolicy", { policyId: idOf(manager) }, { headers: { "postern-manager": manager } });
    expect((await api.call("policies.getPolicy", { policyId: idOf(manager) })).status).toBe(404);
    expect(await set({ ...body, uid: "uid-2" }, manager)).toEqual({ policyId: idOf(manager), version: 3 });
    expect((await auditOf(idOf(manager))).map(({ event }) => event).sort()).toEqual([
      "policy.create",
      "policy.create",
      "policy.delete",
      "policy.update",
    ]);
  });

  test("managed policy id differs for the same manager name in another workspace", async () => {
    const body = aBody();
    const other = await api.makeWorkspace();
    const of = { rootKey: other.rootKey };
    const foreign = (await api.data("apis.createApi", { name: "theirs" }, of)).apiId;
    await set(body, managerOf(body));
    const theirs = { ...body, apiId: foreign, policy: aPolicy({ apiId: foreign }) };
    const headers = { "postern-manager": managerOf(body) };
    const { policyId } = await api.data("policies.setPolicy", theirs, { ...of, headers });
    expect(policyId).toBe(policyIdOf({ workspaceId: other.id, manager: managerOf(body) }));
    expect(policyId).not.toBe(idOf(managerOf(body)));
  });

  test("adopted policy gets the derived id and stays available under the former one", async () => {
    const body = aBody();
    const manager = managerOf(body);
    const { policyId: former } = await set(body, undefined);
    const { policyId, version } = await set(body, manager, adopt);
    expect({ policyId, version }).toEqual({ policyId: idOf(manager), version: 1 });
    const report = { workspaceId: api.workspace.id, generation: 1, version, stalenessMs: 5 };
    await api.deps.pods.report({ ...report, policyId: former, podId: "old" });
    await api.deps.pods.report({ ...report, policyId, podId: "new" });
    const read = await api.data("policies.getPolicy", { policyId: former });
    expect(read).toMatchObject({ policyId, version, dataPlane: { pods: 2, updated: 2 } });
    expect(await api.data("policies.getPolicy", { policyId })).toEqual(read);
    await api.data("policies.deletePolicy", { policyId: former }, { headers: { "postern-manager": manager } });
    expect((await api.call("policies.getPolicy", { policyId: former })).status).toBe(404);
  });

  test("released policy keeps its id until the manager creates another", async () => {
    const body = aBody();
    const manager = managerOf(body);
    await set(body, manager);
    await set({ ...body, generation: 2 }, manager, release);
    expect(await api.data("policies.getPolicy", { policyId: idOf(manager) })).toMatchObject({ generation: 2 });
    const second = (await api.data("apis.createApi", { name: "second" })).apiId;
    const next = { ...body, apiId: second, policy: aPolicy({ apiId: second }) };
    const { version } = await set(next, manager);
    expect(version).toBe(3);
    expect((await api.data("policies.getPolicy", { policyId: idOf(manager) })).policy.apiId).toBe(second);
    const released = await api.data("policies.getPolicy", { apiId, name: body.name });
    expect(released.policy.apiId).toBe(apiId);
    expect(released.policyId).toMatch(/^pol_[a-zA-Z0-9]{16}$/);
    const refused = await api.call(
      "policies.setPolicy",
      { ...body, generation: 3 },
      { headers: { "postern-manager": manager, ...adopt } },
    );
    expect(refused.status).toBe(409);
    expect(kindOf(refused)).toBe("managed_exists");
  });

  test("30 concurrent setPolicy calls of one manager create one policy", async () => {
    const body = aBody();
    const manager = managerOf(body);
    for (const version of [1, 2]) {
      const made = await Promise.all(Array.from({ length: 30 }, () => set(body, manager)));
      expect(new Set(made.map(({ policyId }) => policyId))).toEqual(new Set([idOf(manager)]));
      expect(made[0]?.version).toBe(version);
      await api.data("policies.deletePolicy", { policyId: idOf(manager) }, { headers: { "postern-manager": manager } });
    }
  });
});

describe("getPolicy", () => {
  test("getPolicy returns the number of pods, updated pods and maximum staleness", async () => {
    const { policyId, version } = await api.data("policies.setPolicy", aBody());
    const report = { workspaceId: api.workspace.id, policyId, generation: 1 };
    await api.deps.pods.report({ ...report, podId: "a", version, stalenessMs: 120.5 });
    await api.deps.pods.report({ ...report, podId: "b", version: version - 1, stalenessMs: 4000 });
    await api.deps.pods.report({ ...report, workspaceId: "ws_other", podId: "c", version, stalenessMs: 9000 });
    const read = async () => (await api.data("policies.getPolicy", { policyId })).dataPlane;
    expect(await read()).toEqual({ pods: 2, updated: 1, podIds: ["a", "b"], maxStalenessMs: 4000 });
    await api.deps.pods.report({ ...report, podId: "d", version, stalenessMs: Number.POSITIVE_INFINITY });
    expect(await read()).toEqual({
      pods: 3,
      updated: 2,
      podIds: ["a", "b", "d"],
      maxStalenessMs: Number.MAX_SAFE_INTEGER,
    });
    api.advance(15_001);
    expect(await read()).toEqual({ pods: 0, updated: 0, maxStalenessMs: 0 });
  });

  test("getPolicy lists up to 1,000 pods and counts all others", async () => {
    const { policyId, version } = await api.data("policies.setPolicy", aBody());
    const report = { workspaceId: api.workspace.id, policyId, generation: 1, version, stalenessMs: 1 };
    for (let i = 0; i < 1_000; i++) await api.deps.pods.report({ ...report, podId: `shop/orders-${i}` });
    const read = async () => (await api.data("policies.getPolicy", { policyId })).dataPlane;
    expect((await read()).podIds).toHaveLength(1_000);
    await api.deps.pods.report({ ...report, podId: "shop/one-more" });
    expect(await read()).toEqual({ pods: 1_001, updated: 1_001, maxStalenessMs: 1 });
  });

  test("getPolicy counts the ten most frequent upstream ports", async () => {
    const { policyId, version } = await api.data("policies.setPolicy", aBody());
    const report = { workspaceId: api.workspace.id, policyId, generation: 1, version, stalenessMs: 1 };
    const read = async () => (await api.data("policies.getPolicy", { policyId })).dataPlane?.upstreamPorts;
    await api.deps.pods.report({ ...report, podId: "former-release" });
    expect(await read()).toBeUndefined();
    for (const [i, upstreamPort] of [9090, 8080, 8080].entries()) {
      await api.deps.pods.report({ ...report, podId: `shop/${i}`, upstreamPort });
    }
    expect(await read()).toEqual([
      { port: 8080, pods: 2 },
      { port: 9090, pods: 1 },
    ]);
    for (let port = 1; port <= 20; port++) {
      await api.deps.pods.report({ ...report, podId: `forged-${port}`, upstreamPort: port });
    }
    expect(await read()).toHaveLength(10);
  });

  test("getPolicy sums up exceeded limits reported by pods", async () => {
    const { policyId, version } = await api.data("policies.setPolicy", aBody());
    const report = { workspaceId: api.workspace.id, policyId, generation: 0, version, stalenessMs: 1 };
    const read = async () => (await api.data("policies.getPolicy", { policyId })).dataPlane;
    await api.deps.pods.report({ ...report, podId: "none" });
    expect(await read()).not.toHaveProperty("overAdmitted");
    const lastMs = Date.now() - 60_000;
    await api.deps.pods.report({ ...report, podId: "a", overAdmitted: { units: 10, percent: 134, lastMs } });
    await api.deps.pods.report({
      ...report,
      podId: "b",
      overAdmitted: { units: 5, percent: 20, lastMs: lastMs - 500_000 },
    });
    const { overAdmitted } = await read();
    expect(overAdmitted).toMatchObject({ units: 15, percent: 134 });
    expect(overAdmitted.lastAgoMs).toBeGreaterThan(50_000);
    expect(overAdmitted.lastAgoMs).toBeLessThan(500_000);
    // A pod may say anything: one that has found it out in the future, and more than a number can hold.
    const most = Number.MAX_SAFE_INTEGER;
    await api.deps.pods.report({ ...report, podId: "c", overAdmitted: { units: most, percent: most, lastMs: most } });
    expect((await read()).overAdmitted).toEqual({ units: most, percent: most, lastAgoMs: 0 });
  });

  test("getPolicy lists pods that do not support the current version", async () => {
    const body = aBody();
    const { policyId, version } = await api.data("policies.setPolicy", body);
    const report = { workspaceId: api.workspace.id, policyId, generation: 0, version: 0, stalenessMs: 1 };
    const reason = "format 2 is not known here";
    await api.deps.pods.report({ ...report, podId: "a", refused: { version, reason } });
    await api.deps.pods.report({ ...report, podId: "b", refused: { version: version + 1, reason: "another" } });
    await api.deps.pods.report({ ...report, podId: "c", refused: { version: 0, reason: "nothing can be read" } });
    await api.deps.pods.report({ ...report, podId: "d", version });
    const read = async () => (await api.data("policies.getPolicy", { policyId })).dataPlane;
    const podIds = ["a", "b", "c", "d"];
    expect(await read()).toEqual({ pods: 4, updated: 1, podIds, maxStalenessMs: 1, unsupported: { pods: 2, reason } });
    await api.data("policies.setPolicy", { ...body, generation: 2 });
    expect((await read()).unsupported).toEqual({ pods: 2, reason: "another" });
  });

  test.each([
    { name: "nothing", body: {} },
    { name: "an API alone", body: { apiId: "api_something1" } },
    { name: "a name alone", body: { name: "a/b/c" } },
    { name: "both ways", body: { policyId: "pol_1", apiId: "api_something1", name: "a/b/c" } },
  ])("getPolicy rejects a request that names the policy by $name", async ({ body }) => {
    expect((await api.call("policies.getPolicy", body)).status).toBe(400);
  });

  test("getPolicy applies defaults to an older format and omits an unknown one", async () => {
    const body = aBody();
    const { policyId } = await api.data("policies.setPolicy", body);
    const read = () => api.data("policies.getPolicy", { policyId });
    const store = (policy: object) =>
      api.deps.db.query("update policies set policy = $2 where id = $1", [policyId, JSON.stringify(policy)]);
    const { mode: _, allowPaths: __, ...older } = aPolicy();
    await store(older);
    expect((await read()).policy).toEqual({ ...older, mode: "Enforce", allowPaths: [] });
    await store({ ...aPolicy(), ofALaterRelease: { deep: 1 } });
    // Shown as it is: an operator that compares must see that it is not what it would set.
    expect((await read()).policy).toEqual({ ...aPolicy(), ofALaterRelease: { deep: 1 } });
    await store({ ...aPolicy(), formatVersion: 3 });
    const later = await read();
    expect(later).toMatchObject({ policyId, version: 1 });
    expect(later).not.toHaveProperty("policy");
    expect(await api.data("policies.setPolicy", { ...body, generation: 9 })).toEqual({ policyId, version: 2 });
    expect((await read()).policy).toEqual(body.policy);
  });

  test("getPolicy checks for 404 before 403, and responds alike for missing and foreign policies", async () => {
    const { policyId } = await api.data("policies.setPolicy", aBody());
    const other = await api.makeWorkspace();
    const ask = async (rootKey: string): Promise<string> => {
      const reply = await api.call("policies.getPolicy", { policyId }, { rootKey });
      expect(reply.status).toBe(404);
      expect(kindOf(reply)).toBe("policy_not_found");
      return JSON.stringify(reply.body.error);
    };
    const rootKey = await api.rootKey(["api.*.update_api"]);
    expect((await api.call("policies.getPolicy", { policyId }, { rootKey })).status).toBe(403);
    const foreign = await ask(other.rootKey);
    await api.data("policies.deletePolicy", { policyId });
    expect(await ask(rootKey)).toBe(foreign);
  });
});

describe("listPolicies", () => {
  test("listPolicies returns readable policies in pages, without their contents", async () => {
    const other = await api.makeWorkspace();
    const of = { rootKey: other.rootKey };
    const [first, second] = [
      (await api.data("apis.createApi", { name: "one" }, of)).apiId,
      (await api.data("apis.createApi", { name: "two" }, of)).apiId,
    ];
    for (const id of [first, first, second]) {
      await api.data("policies.setPolicy", aBody({ apiId: id, policy: aPolicy({ apiId: id }) }), of);
    }
    const page = await api.call("policies.listPolicies", { limit: 2 }, of);
    expect(page.body.data).toHaveLength(2);
    expect(Object.keys(page.body.data[0]).sort()).toEqual([
      "apiId",
      "dataPlane",
      "generation",
      "name",
      "policyId",
      "uid",
      "version",
      "workspaceId",
    ]);
    const { cursor } = page.body.pagination;
    const rest = await api.call("policies.listPolicies", { limit: 2, cursor }, of);
    expect(rest.body).toMatchObject({ data: [{ policyId: cursor }], pagination: { hasMore: false } });
    expect(await api.data("policies.listPolicies", { apiId: first }, of)).toHaveLength(2);

    const limited = { rootKey: await api.rootKey([`api.${first}.read_api`], { workspaceId: other.id }) };
    expect(await api.data("policies.listPolicies", { apiId: first }, limited)).toHaveLength(2);
    const refused = await api.call("policies.listPolicies", {}, limited);
    expect(refused.status).toBe(403);
    expect(refused.body.error.detail).toContain(`api.*.read_api or api.${second}.read_api`);
    expect((await api.call("policies.listPolicies", { apiId: first })).status).toBe(404);
  });
});

describe("listStatus", () => {
  /** A workspace with policies of these names; returns the ids by name. */
  async function aWorkspaceWith(names: readonly string[]) {
    const workspace = await api.makeWorkspace();
    const of = { rootKey: workspace.rootKey };
    const { apiId: id } = await api.data("apis.createApi", { name: "watched" }, of);
    const policies = new Map<string, { policyId: string; version: number }>();
    for (const name of names) {
      const body = aBody({ apiId: id, name, policy: aPolicy({ apiId: id }) });
      const manager = { "postern-manager": name.replace("/", "/ApiKeyPolicy/") };
      policies.set(name, await api.data("policies.setPolicy", body, { ...of, headers: manager }));
    }
    return { workspaceId: workspace.id, of, apiId: id, policies };
  }

  test("listStatus returns stored state, API and gate reports of each policy", async () => {
    const names = ["main/shop/a", "main/shop/b"];
    const { workspaceId, of, apiId: id, policies } = await aWorkspaceWith(names);
    const [a, b] = names.map((name) => policies.get(name)?.policyId ?? "");
    const report = { workspaceId, policyId: b ?? "", generation: 1, stalenessMs: 7 };
    await api.deps.pods.report({ ...report, podId: "shop/b-1", version: 1 });
    await api.deps.pods.report({ ...report, podId: "shop/b-2", version: 0 });
    await api.deps.pods.report({ ...report, workspaceId: "ws_other", podId: "shop/b-3", version: 1 });
    const listed: Array<{ policyId: string }> = await api.data("policies.listStatus", {}, of);
    const expected = names.map((name, i) => ({
      policyId: [a, b][i],
      workspaceId,
      apiId: id,
      api: { name: "watched" },
      name,
      manager: name.replace("/", "/ApiKeyPolicy/"),
      uid: "uid-1",
      generation: 1,
      version: 1,
      dataPlane:
        i === 0
          ? { pods: 0, updated: 0, maxStalenessMs: 0 }
          : { pods: 2, updated: 1, podIds: ["shop/b-1", "shop/b-2"], maxStalenessMs: 7 },
    }));
    expect(listed).toEqual(expected.sort((x, y) => ((x.policyId ?? "") < (y.policyId ?? "") ? -1 : 1)));
    await api.data("apis.deleteApi", { apiId: id }, of);
    for (const one of await api.data("policies.listStatus", {}, of)) expect(one).not.toHaveProperty("api");
  });

  test("listStatus returns policies in pages and filters by cluster", async () => {
    const ours = Array.from({ length: 5 }, (_, i) => `ma_n/shop/p${i}`);
    const { of } = await aWorkspaceWith([...ours, "man/shop/x", "ma_n2/shop/x", "maxn/shop/x"]);
    const found: string[] = [];
    let cursor: string | undefined;
    do {
      const { body } = await api.call("policies.listStatus", { cluster: "ma_n", limit: 2, cursor }, of);
      expect(body.data.length).toBeLessThanOrEqual(2);
      found.push(...body.data.map(({ name }: { name: string }) => name));
      cursor = body.pagination.cursor;
    } while (cursor !== undefined);
    expect(found.sort()).toEqual(ours);
    expect(await api.data("policies.listStatus", {}, of)).toHaveLength(8);
    for (const limit of [0, 501]) expect((await api.call("policies.listStatus", { limit }, of)).status).toBe(400);
    expect((await api.call("policies.listStatus", { limit: 500 }, of)).status).toBe(200);
  });

  test("listStatus rejects a page with a policy of an unreadable API", async () => {
    const { of, workspaceId } = await aWorkspaceWith(["main/shop/a"]);
    const { apiId: second } = await api.data("apis.createApi", { name: "second" }, of);
    const limited = { rootKey: await api.rootKey([`api.${second}.read_api`], { workspaceId }) };
    expect((await api.call("policies.listStatus", {}, limited)).status).toBe(403);
    expect(await api.data("policies.listStatus", { cluster: "other" }, limited)).toEqual([]);
  });
});

describe("deletePolicy", () => {
  test("deletePolicy frees the name, and returns 404 when repeated", async () => {
    const body = aBody();
    const { policyId } = await api.data("policies.setPolicy", body);
    expect(await api.data("policies.deletePolicy", { policyId })).toEqual({});
    expect((await api.call("policies.deletePolicy", { policyId })).status).toBe(404);
    const again = await api.data("policies.setPolicy", body);
    expect(again).toMatchObject({ version: 1 });
    expect(again.policyId).not.toBe(policyId);
    expect((await auditOf(policyId)).map(({ event }) => event).sort()).toEqual(["policy.create", "policy.delete"]);
  });

  test("deletePolicy checks for 404 before 403, and responds alike for foreign policies", async () => {
    const { policyId } = await api.data("policies.setPolicy", aBody());
    const other = await api.makeWorkspace();
    const foreign = await api.call("policies.deletePolicy", { policyId }, { rootKey: other.rootKey });
    expect(foreign.status).toBe(404);
    const rootKey = await api.rootKey(["api.*.read_api"]);
    const reply = await api.call("policies.deletePolicy", { policyId }, { rootKey });
    expect(reply.status).toBe(403);
    expect(reply.body.error.detail).toContain(`api.*.update_api or api.${apiId}.update_api`);
    await api.data("policies.deletePolicy", { policyId });
    const missing = await api.call("policies.deletePolicy", { policyId }, { rootKey });
    expect(missing.body.error).toEqual(foreign.body.error);
  });
});

test("policies are readable while pod reports are unavailable", async () => {
  const broken = await buildTestApp({
    deps: (deps) => ({ pods: { ...deps.pods, listEach: () => Promise.reject(new Error("away")) } }),
  });
  try {
    const { apiId: id } = await broken.data("apis.createApi", { name: "orders" });
    const body = { ...aBody(), apiId: id, policy: aPolicy({ apiId: id }) };
    const { policyId } = await broken.data("policies.setPolicy", body);
    const read = await broken.data("policies.getPolicy", { policyId });
    expect(read).not.toHaveProperty("dataPlane");
    expect(read).toMatchObject({ policyId, version: 1 });
    const [listed] = await broken.data("policies.listStatus", {});
    expect(listed).toMatchObject({ policyId, version: 1 });
    expect(listed).not.toHaveProperty("dataPlane");
  } finally {
    await broken.close();
  }
});
