import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { PolicyFields } from "../../../core/manifests/from-store/policy-spec.ts";
import { policyIdOf } from "../../../core/policies/policy-id.ts";
import { buildTestApp, type Reply, type TestApp } from "../../test/app.ts";
import { policyBody } from "../../test/resources.ts";

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

/** Returns the manifest of a new policy, as the body of managed.applyObject. */
const aBody = (fields: PolicyFields = {}, of = apiId) => policyBody(of, `p${++count}`, fields);
/** Applies a manifest, and returns the stored policy. */
const apply = async (body: object, options?: { rootKey: string }): Promise<{ policyId: string; version: number }> =>
  (await api.data("managed.applyObject", body, options)).policy;
const remove = ({ manager, kind }: ReturnType<typeof policyBody>) =>
  api.data("managed.deleteObject", { manager, kind });

describe("an applied policy", () => {
  test("getPolicy returns an applied policy by id and name", async () => {
    const { namespaceId } = await api.data("ratelimit.createNamespace", { name: "writes" });
    const body = aBody({
      credentials: [
        { header: { name: "Authorization", scheme: "Bearer" } },
        { header: { name: "X-API-Key" } },
        { query: { name: "key" } },
      ],
      rules: [
        { match: { methods: ["GET", "HEAD"], path: { prefix: "/healthz" } }, access: "Anonymous" },
        {
          match: { path: { exact: "/orders" } },
          permissions: "a OR (b AND c.*)",
          credits: { cost: 0 },
          ratelimits: [
            { name: "writes", limit: 0, duration: "1s", cost: 0 },
            { namespace: "writes", identifier: "Identity", limit: 1, duration: "1s", async: true },
          ],
        },
        {},
      ],
      clientAddress: { from: "ForwardedFor", trustedProxies: ["10.0.0.0/8"] },
      allowPaths: ["EncodedSlash", "Semicolon"],
    });
    const { policyId } = await apply({ ...body, uid: "uid-1", generation: 3 });
    const name = `main/shop/p${count}`;
    const keyed = { access: "Key", creditCost: 1, ratelimits: [] };
    const limit = { identifier: "key", durationMs: 1000, accuracy: "strict" };
    const expected = {
      policyId,
      workspaceId: api.workspace.id,
      apiId,
      name,
      manager: body.manager,
      uid: "uid-1",
      generation: 3,
      version: 1,
      dataPlane: { pods: 0, updated: 0, maxStalenessMs: 0 },
      policy: {
        formatVersion: 1,
        apiId,
        mode: "Enforce",
        credentials: [
          { in: "header", name: "Authorization", scheme: "Bearer" },
          { in: "header", name: "X-API-Key" },
          { in: "query", name: "key" },
        ],
        rules: [
          { ...keyed, methods: ["GET", "HEAD"], path: { prefix: "/healthz" }, access: "Anonymous" },
          {
            ...keyed,
            path: { exact: "/orders" },
            permissions: "a OR (b AND c.*)",
            creditCost: 0,
            ratelimits: [
              { ...limit, scope: { kind: "name", name: "writes" }, limit: 0, cost: 0 },
              {
                ...limit,
                scope: { kind: "namespace", namespaceId },
                identifier: "identity",
                limit: 1,
                cost: 1,
                accuracy: "local",
              },
            ],
          },
          keyed,
        ],
        onStale: { afterMs: 30_000, action: "Serve", denyAfterMs: 900_000 },
        onCounterFailure: "Local",
        onCreditFailure: "Deny",
        clientAddress: { from: "forwardedFor", trustedProxies: ["10.0.0.0/8"] },
        allowPaths: ["EncodedSlash", "Semicolon"],
      },
    };
    expect(await api.data("policies.getPolicy", { policyId })).toEqual(expected);
    expect(await api.data("policies.getPolicy", { apiId, name })).toEqual(expected);
    expect(await auditOf(policyId)).toMatchObject([{ event: "policy.create" }]);
    const [row] = await auditOf(policyId);
    expect(row?.actor.meta).toEqual({ manager: body.manager });
  });

  test("audit log contains the names of changed rules, and names that a header cannot contain are rejected", async () => {
    const body = aBody({ rules: [{}] });
    const { policyId } = await apply(body);
    const named = (name: string) => ({ ...body, spec: { ...body.spec, rules: [{ name }] } });
    await apply(named("refund"));
    const rows = await api.data("admin.listAudit", { event: "policy.update" });
    const logged = rows.filter(({ targets }: { targets: { id: string }[] }) => targets[0]?.id === policyId);
    expect(logged).toMatchObject([{ before: { rules: [{ access: "Key" }] }, after: { rules: [{ name: "refund" }] } }]);
    for (const name of ['a"b', "a\r\nB: c", "Refund", "-a", ""]) {
      expect((await api.call("managed.applyObject", named(name))).status).toBe(400);
    }
  });

  test("another generation or uid of an equal policy increments the version", async () => {
    const body = { ...aBody(), uid: "uid-1", generation: 5 };
    const { policyId } = await apply(body);
    expect(await apply(body)).toMatchObject({ policyId, version: 1 });
    expect(await apply({ ...body, generation: 6 })).toMatchObject({ policyId, version: 2 });
    expect(kindOf(await api.call("managed.applyObject", body))).toBe("stale_policy_generation");
    expect(await apply({ ...body, uid: "uid-2", generation: 1 })).toMatchObject({ policyId, version: 3 });
    const events = (await auditOf(policyId)).map(({ event }) => event).sort();
    expect(events).toEqual(["policy.create", "policy.update", "policy.update"]);
  });

  test("newest generation of a policy prevails among 100 concurrent calls", async () => {
    const body = { ...aBody(), uid: "uid-1" };
    const replies = await Promise.all(
      Array.from({ length: 100 }, (_, i) => api.call("managed.applyObject", { ...body, generation: i + 1 })),
    );
    const made = replies.filter(({ status }) => status === 200);
    expect(new Set(made.map((reply) => reply.body.data.ids.policyId)).size).toBe(1);
    expect(
      replies.filter(({ status }) => status !== 200).every((reply) => kindOf(reply) === "stale_policy_generation"),
    ).toBe(true);
    const { policyId } = made[0]?.body.data.ids ?? {};
    expect(await api.data("policies.getPolicy", { policyId })).toMatchObject({ generation: 100, version: made.length });
  });

  test("compiled policy can have up to 256 KiB", async () => {
    const query = (length: number) => "p".repeat(length);
    const full = Array.from({ length: 245 }, () => ({ permissions: query(1000) }));
    const body = aBody({ rules: [...full, {}] });
    const withLast = (length: number) => ({
      ...body,
      spec: { ...body.spec, rules: [...full, { permissions: query(length) }] },
    });
    const { policyId } = await apply(withLast(1));
    const { policy } = await api.data("policies.getPolicy", { policyId });
    const room = 262_144 - Buffer.byteLength(JSON.stringify(policy)) + 1;
    expect(room).toBeGreaterThan(1);
    expect(room).toBeLessThan(1000);
    expect((await api.call("managed.applyObject", withLast(room))).status).toBe(200);
    const reply = await api.call("managed.applyObject", withLast(room + 1));
    expect(reply.status).toBe(400);
    expect(reply.body.error.errors[0].location).toBe("body.spec");
  });

  test("applyObject gives the same response for a missing API and one of another workspace, and requires `update_api`", async () => {
    const rootKey = await api.rootKey(["api.*.read_api"]);
    const other = await api.makeWorkspace();
    const foreign = (await api.data("apis.createApi", { name: "theirs" }, { rootKey: other.rootKey })).apiId;
    const body = aBody();
    const ask = async (id: string) => {
      const spec = { ...body.spec, api: { id } };
      const reply = await api.call("managed.applyObject", { ...body, spec }, { rootKey });
      expect(reply.status).toBe(404);
      return JSON.stringify(reply.body.error).replaceAll(id, "ID");
    };
    const deleted = (await api.data("apis.createApi", { name: "gone" })).apiId;
    await api.data("apis.deleteApi", { apiId: deleted });
    expect(new Set([await ask(foreign), await ask("api_missing1"), await ask(deleted)]).size).toBe(1);
    const reply = await api.call("managed.applyObject", body, { rootKey });
    expect(reply.status).toBe(403);
    expect(reply.body.error.detail).toContain(`api.*.update_api or api.${apiId}.update_api`);
  });

  test("deleteObject of a policy requires `update_api`, and deletes nothing in another workspace", async () => {
    const body = aBody();
    const { policyId } = await apply(body);
    const other = await api.makeWorkspace();
    const { manager, kind } = body;
    const deleteAs = (rootKey: string) => api.call("managed.deleteObject", { manager, kind }, { rootKey });
    expect((await deleteAs(other.rootKey)).body.data).toEqual({ outcome: "absent", ids: {} });
    const reply = await deleteAs(await api.rootKey(["api.*.read_api"]));
    expect(reply.status).toBe(403);
    expect(reply.body.error.detail).toContain(`api.*.update_api or api.${apiId}.update_api`);
    expect((await api.data("managed.getObject", { kind: "policy", id: policyId })).manager).toBe(manager);
    expect(await remove(body)).toEqual({ outcome: "deleted", ids: { policyId } });
    expect(await remove(body)).toEqual({ outcome: "absent", ids: {} });
  });
});

describe("the id of a policy", () => {
  const idOf = ({ manager }: { manager: string }, workspaceId = api.workspace.id) =>
    policyIdOf({ workspaceId, manager });
  /** Releases a policy, as an administrator does. Gives it another id if it has one. */
  const release = (policyId: string, id = policyId) =>
    api.deps.db.query("update policies set manager = null, id = $2 where id = $1", [policyId, id]);

  test("policy id is derived from the workspace and the manager, and is the same after the policy is recreated", async () => {
    const body = aBody();
    const policyId = idOf(body);
    expect(await apply(body)).toMatchObject({ policyId, version: 1 });
    await apply({ ...body, spec: { ...body.spec, mode: "Audit" } });
    await remove(body);
    expect((await api.call("policies.getPolicy", { policyId })).status).toBe(404);
    expect(await apply(body)).toMatchObject({ policyId, version: 3, generation: 1 });
    expect((await auditOf(policyId)).map(({ event }) => event).sort()).toEqual([
      "policy.create",
      "policy.create",
      "policy.delete",
      "policy.update",
    ]);
  });

  test("policy id differs for the same manager name in another workspace", async () => {
    const body = aBody();
    const other = await api.makeWorkspace();
    const of = { rootKey: other.rootKey };
    const foreign = (await api.data("apis.createApi", { name: "theirs" }, of)).apiId;
    await apply(body);
    const { policyId } = await apply({ ...body, spec: { ...body.spec, api: { id: foreign } } }, of);
    expect(policyId).toBe(idOf(body, other.id));
    expect(policyId).not.toBe(idOf(body));
  });

  test("policy with a different id gets the derived id, and stays available under its former id", async () => {
    const body = aBody();
    const former = `pol_former${count}`;
    await release((await apply(body)).policyId, former);
    const { policyId, version } = await apply(body);
    expect({ policyId, version }).toEqual({ policyId: idOf(body), version: 1 });
    const report = { workspaceId: api.workspace.id, generation: 1, version, stalenessMs: 5 };
    await api.deps.pods.report({ ...report, policyId: former, podId: "old" });
    await api.deps.pods.report({ ...report, policyId, podId: "new" });
    const read = await api.data("policies.getPolicy", { policyId: former });
    expect(read).toMatchObject({ policyId, version, manager: body.manager, dataPlane: { pods: 2, updated: 2 } });
    expect(await api.data("policies.getPolicy", { policyId })).toEqual(read);
    await remove(body);
    expect((await api.call("policies.getPolicy", { policyId: former })).status).toBe(404);
  });

  test("released policy keeps its id until its former manager creates another policy", async () => {
    const body = aBody();
    const policyId = idOf(body);
    await apply(body);
    await release(policyId);
    expect(await api.data("policies.getPolicy", { policyId })).not.toHaveProperty("manager");
    const second = (await api.data("apis.createApi", { name: "second" })).apiId;
    expect(await apply({ ...body, spec: { ...body.spec, api: { id: second } } })).toMatchObject({
      policyId,
      apiId: second,
      version: 2,
    });
    const released = await api.data("policies.getPolicy", { apiId, name: `main/shop/p${count}` });
    expect(released.policy.apiId).toBe(apiId);
    expect(released.policyId).toMatch(/^pol_[a-zA-Z0-9]{16}$/);
    const moved = await api.call("managed.applyObject", body);
    expect([moved.status, kindOf(moved)]).toEqual([400, "invalid_input"]);
  });

  test("30 concurrent calls by one manager create only one policy", async () => {
    const body = aBody();
    for (const version of [1, 2]) {
      const made = await Promise.all(Array.from({ length: 30 }, () => apply(body)));
      expect(new Set(made.map(({ policyId }) => policyId))).toEqual(new Set([idOf(body)]));
      expect(made[0]?.version).toBe(version);
      await remove(body);
    }
  });
});

describe("getPolicy", () => {
  test("getPolicy returns the number of pods, updated pods and maximum staleness", async () => {
    const { policyId, version } = await apply(aBody());
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

  test("getPolicy counts all pods, but lists their names only if there are at most 1,000", async () => {
    const { policyId, version } = await apply(aBody());
    const report = { workspaceId: api.workspace.id, policyId, generation: 1, version, stalenessMs: 1 };
    for (let i = 0; i < 1_000; i++) await api.deps.pods.report({ ...report, podId: `shop/orders-${i}` });
    const read = async () => (await api.data("policies.getPolicy", { policyId })).dataPlane;
    expect((await read()).podIds).toHaveLength(1_000);
    await api.deps.pods.report({ ...report, podId: "shop/one-more" });
    expect(await read()).toEqual({ pods: 1_001, updated: 1_001, maxStalenessMs: 1 });
  });

  test("getPolicy counts the ten most frequent upstream ports", async () => {
    const { policyId, version } = await apply(aBody());
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
    const { policyId, version } = await apply(aBody());
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
    const { policyId, version } = await apply(body);
    const report = { workspaceId: api.workspace.id, policyId, generation: 0, version: 0, stalenessMs: 1 };
    const reason = "format 2 is not known here";
    await api.deps.pods.report({ ...report, podId: "a", refused: { version, reason } });
    await api.deps.pods.report({ ...report, podId: "b", refused: { version: version + 1, reason: "another" } });
    await api.deps.pods.report({ ...report, podId: "c", refused: { version: 0, reason: "nothing can be read" } });
    await api.deps.pods.report({ ...report, podId: "d", version });
    const read = async () => (await api.data("policies.getPolicy", { policyId })).dataPlane;
    const podIds = ["a", "b", "c", "d"];
    expect(await read()).toEqual({ pods: 4, updated: 1, podIds, maxStalenessMs: 1, unsupported: { pods: 2, reason } });
    await apply({ ...body, generation: 2 });
    expect((await read()).unsupported).toEqual({ pods: 2, reason: "another" });
  });

  test.each([
    { name: "nothing", body: {} },
    { name: "an API alone", body: { apiId: "api_something1" } },
    { name: "a name alone", body: { name: "a/b/c" } },
    { name: "both ways", body: { policyId: "pol_1", apiId: "api_something1", name: "a/b/c" } },
  ])("getPolicy rejects a request that identifies the policy by $name", async ({ body }) => {
    expect((await api.call("policies.getPolicy", body)).status).toBe(400);
  });

  test("getPolicy applies defaults to a policy in an older format, and omits a policy in an unknown format", async () => {
    const body = aBody();
    const { policyId } = await apply(body);
    const read = () => api.data("policies.getPolicy", { policyId });
    const { policy } = await read();
    const store = (stored: object) =>
      api.deps.db.query("update policies set policy = $2 where id = $1", [policyId, JSON.stringify(stored)]);
    const { mode: _, allowPaths: __, ...older } = policy;
    await store(older);
    expect((await read()).policy).toEqual(policy);
    await store({ ...policy, ofALaterRelease: { deep: 1 } });
    // Shown as it is: an operator that compares must see that it is not what it would set.
    expect((await read()).policy).toEqual({ ...policy, ofALaterRelease: { deep: 1 } });
    await store({ ...policy, formatVersion: 3 });
    const later = await read();
    expect(later).toMatchObject({ policyId, version: 1 });
    expect(later).not.toHaveProperty("policy");
    expect(await apply(body)).toMatchObject({ policyId, version: 2 });
    expect((await read()).policy).toEqual(policy);
  });

  test("getPolicy checks for 404 before 403, and gives the same response for a missing policy and one of another workspace", async () => {
    const body = aBody();
    const { policyId } = await apply(body);
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
    await remove(body);
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
    for (const id of [first, first, second]) await apply(aBody({}, id), of);
    const page = await api.call("policies.listPolicies", { limit: 2 }, of);
    expect(page.body.data).toHaveLength(2);
    expect(Object.keys(page.body.data[0]).sort()).toEqual([
      "apiId",
      "dataPlane",
      "generation",
      "manager",
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
      const manager = name.replace("/", "/ApiKeyPolicy/");
      policies.set(name, await apply({ ...aBody({}, id), manager, uid: "uid-1" }, of));
    }
    return { workspaceId: workspace.id, of, apiId: id, policies };
  }

  test("listStatus returns the stored state, the API and the gate reports of each policy", async () => {
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

test("policies are readable while pod reports are unavailable", async () => {
  const broken = await buildTestApp({
    deps: (deps) => ({ pods: { ...deps.pods, listEach: () => Promise.reject(new Error("away")) } }),
  });
  try {
    const { apiId: id } = await broken.data("apis.createApi", { name: "orders" });
    const { policyId } = (await broken.data("managed.applyObject", aBody({}, id))).ids;
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
