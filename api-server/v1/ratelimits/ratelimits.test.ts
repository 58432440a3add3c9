import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildTestApp, type TestApp } from "../../test/app.ts";

let t: TestApp;
beforeAll(async () => {
  t = await buildTestApp();
});
afterAll(() => t.close());

const HOUR_MS = 3_600_000;
const call = (namespace: string, more: object = {}) => ({
  namespace,
  identifier: "user_1",
  limit: 3,
  duration: HOUR_MS,
  ...more,
});
const namespaceIdOf = async (namespace: string): Promise<string> =>
  (await t.data("ratelimit.getNamespace", { namespace })).id;

describe("ratelimits.limit", () => {
  test("v1 ratelimits.limit shares its counters with v2", async () => {
    const path = (at: number) => (at % 2 === 0 ? "v1/ratelimits.limit" : "ratelimit.limit");
    const responses = [];
    for (let at = 0; at < 4; at++) responses.push(await t.data(path(at), call("both")));
    expect(responses.map(({ success }) => success)).toEqual([true, true, true, false]);
    expect(responses.map(({ remaining }) => remaining)).toEqual([2, 1, 0, 0]);
    expect(Object.keys(await t.data("v1/ratelimits.limit", call("both")))).toEqual([
      "success",
      "limit",
      "remaining",
      "reset",
    ]);
  });

  test("v1 ratelimits.limit uses the namespace `default` if the request names none", async () => {
    const { namespace: _, ...rest } = call("");
    await t.data("v1/ratelimits.limit", { ...rest, identifier: "of default" });
    expect((await t.data("ratelimit.limit", { ...call("default"), identifier: "of default" })).remaining).toBe(1);
  });

  test("v1 ratelimits.limit with cost 0 consumes nothing", async () => {
    await t.data("v1/ratelimits.limit", call("looks"));
    for (let at = 0; at < 3; at++) {
      const looked = await t.data("v1/ratelimits.limit", call("looks", { cost: 0 }));
      expect([looked.success, looked.remaining]).toEqual([true, 2]);
    }
  });

  test("v1 ratelimits.limit applies an override and returns its limit", async () => {
    await t.data("v1/ratelimits.limit", call("overridden"));
    const set = { namespaceName: "overridden", identifier: "user_*", limit: 100, duration: HOUR_MS };
    await t.data("v1/ratelimits.setOverride", set);
    expect(await t.data("v1/ratelimits.limit", call("overridden"))).toMatchObject({ success: true, limit: 100 });
  });

  test("v1 ratelimits.limit creates a missing namespace only if the root key has both permissions", async () => {
    const refused = async (permissions: string[]) =>
      (await t.call("v1/ratelimits.limit", call("forbidden"), { rootKey: await t.rootKey(permissions) })).status;
    expect(await refused(["ratelimit.*.limit"])).toBe(404);
    expect(await refused([])).toBe(404);
    expect(await refused(["ratelimit.*.create_namespace"])).toBe(403);
    expect((await t.call("ratelimit.getNamespace", { namespace: "forbidden" })).status).toBe(404);
    expect(await refused(["ratelimit.*.limit", "ratelimit.*.create_namespace"])).toBe(200);
  });

  test("v1 ratelimits.limit of a deleted namespace gets 404 and does not recreate it", async () => {
    await t.data("v1/ratelimits.limit", call("deleted"));
    await t.data("ratelimit.deleteNamespace", { namespace: "deleted" });
    const reply = await t.call("v1/ratelimits.limit", call("deleted"));
    expect([reply.status, reply.body.error.code]).toEqual([404, "NOT_FOUND"]);
  });

  test("v1 ratelimits.limit records the decision in the audit log only if resources are given", async () => {
    const { id: workspaceId, rootKey } = await t.makeWorkspace();
    const resources = [{ type: "project", id: "p_1", name: "dub", meta: { plan: "pro", seats: 3, trial: null } }];
    const asked = call("audited", { limit: 1, meta: { secret: "not stored" } });
    await t.data("v1/ratelimits.limit", asked, { rootKey });
    await t.data("v1/ratelimits.limit", { ...asked, resources }, { rootKey });
    await t.data("v1/ratelimits.limit", { ...asked, identifier: "user_2", resources }, { rootKey });
    const rows = (await t.audit(workspaceId)).filter(({ event }) => event.startsWith("ratelimit."));
    expect(rows.map(({ event }) => event).toSorted()).toEqual(["ratelimit.denied", "ratelimit.success"]);
    expect(rows[0]?.targets[0]).toMatchObject({ type: "ratelimitNamespace", name: "audited", meta: { resources } });
    expect(JSON.stringify(rows)).not.toContain("not stored");
  });

  test.each([
    { more: { identifier: "" }, path: "identifier" },
    { more: { identifier: "x".repeat(513) }, path: "identifier" },
    { more: { limit: 0 }, path: "limit" },
    { more: { limit: 1.5 }, path: "limit" },
    { more: { duration: 999 }, path: "duration" },
    { more: { duration: 2_592_000_001 }, path: "duration" },
    { more: { cost: -1 }, path: "cost" },
    { more: { namespace: "" }, path: "namespace" },
    { more: { async: "yes" }, path: "async" },
    { more: { meta: { deep: {} } }, path: "meta" },
    { more: { resources: Array.from({ length: 21 }, () => ({ type: "t", id: "i" })) }, path: "resources" },
    { more: { resources: [{ type: "t" }] }, path: "resources.0" },
  ])("v1 ratelimits.limit with $path out of range gets 400 with the location", async ({ more, path }) => {
    const reply = await t.call("v1/ratelimits.limit", call("bounds", more));
    expect(reply.status).toBe(400);
    expect(reply.body.error.message.startsWith(path)).toBe(true);
  });

  test("v1 ratelimits.limit with `async` counts in the process", async () => {
    const responses = [];
    for (let at = 0; at < 4; at++) responses.push(await t.data("v1/ratelimits.limit", call("async", { async: true })));
    expect(responses.map(({ success }) => success)).toEqual([true, true, true, false]);
  });
});

describe("overrides", () => {
  test("v1 override can be set, read, updated, listed and deleted, and is visible in v2", async () => {
    await t.data("v1/ratelimits.limit", call("story"));
    const namespaceId = await namespaceIdOf("story");
    const set = { namespaceId, identifier: "vip_*", limit: 50, duration: 60_000 };
    const { overrideId } = await t.data("v1/ratelimits.setOverride", set);
    const shown = { id: overrideId, identifier: "vip_*", limit: 50, duration: 60_000, async: false };
    expect(await t.data("v1/ratelimits.getOverride", { namespaceName: "story", identifier: "vip_*" })).toEqual(shown);
    expect((await t.data("ratelimit.getOverride", { namespace: "story", identifier: "vip_1" })).overrideId).toBe(
      overrideId,
    );
    // Literally, as v1 reads it.
    const resolved = await t.call("v1/ratelimits.getOverride", { namespaceName: "story", identifier: "vip_1" });
    expect([resolved.status, resolved.body.error.code]).toEqual([404, "NOT_FOUND"]);

    const changed = { namespaceName: "story", identifier: "vip_*", limit: 0, duration: 1000, async: true };
    expect(await t.data("v1/ratelimits.setOverride", changed)).toEqual({ overrideId });
    expect(await t.data("v1/ratelimits.listOverrides", { namespaceId })).toEqual({
      overrides: [{ ...shown, limit: 0, duration: 1000, async: true }],
      total: 1,
    });
    expect(await t.data("v1/ratelimits.deleteOverride", { namespaceId, identifier: "vip_*" })).toEqual({});
    expect((await t.call("v1/ratelimits.deleteOverride", { namespaceId, identifier: "vip_*" })).status).toBe(404);
    expect(await t.data("v1/ratelimits.listOverrides", { namespaceId })).toEqual({ overrides: [], total: 0 });
  });

  test("v1 listOverrides pages return each override exactly once, and the last page has no cursor", async () => {
    await t.data("v1/ratelimits.limit", call("pages"));
    const made: string[] = [];
    for (let at = 0; at < 5; at++) {
      const set = { namespaceName: "pages", identifier: `u${at}`, limit: 1, duration: 1000 };
      made.push((await t.data("v1/ratelimits.setOverride", set)).overrideId);
    }
    const first = await t.data("v1/ratelimits.listOverrides", { namespaceName: "pages", limit: 3 });
    const { cursor } = first;
    const second = await t.data("v1/ratelimits.listOverrides", { namespaceName: "pages", limit: 3, cursor });
    expect([first.total, second.total, "cursor" in second]).toEqual([5, 5, false]);
    const ids = [...first.overrides, ...second.overrides].map(({ id }: { id: string }) => id);
    expect(ids).toEqual(made.toSorted());
  });

  test("v1 override calls accept the namespace's id or name, and the id takes precedence", async () => {
    await t.data("v1/ratelimits.limit", call("selected"));
    const namespaceId = await namespaceIdOf("selected");
    // A namespace whose name is the id of another.
    await t.data("ratelimit.createNamespace", { name: namespaceId });
    const set = (selector: object) =>
      t.call("v1/ratelimits.setOverride", { ...selector, identifier: "u", limit: 1, duration: 1000 });
    const byId = (await set({ namespaceId, namespaceName: "no such" })).body.overrideId;
    const byName = (await set({ namespaceName: namespaceId, namespaceId: "" })).body.overrideId;
    expect(byId).not.toBe(byName);
    expect((await set({ namespaceName: "selected" })).body.overrideId).toBe(byId);
    for (const selector of [{}, { namespaceId: "" }, { namespaceId: "", namespaceName: "" }]) {
      const reply = await set(selector);
      expect([reply.status, reply.body.error.code]).toEqual([400, "BAD_REQUEST"]);
    }
    // A name is no id.
    expect((await set({ namespaceId: "selected" })).status).toBe(404);
  });

  test("v1 override of another workspace's namespace gets 404", async () => {
    const { rootKey } = await t.makeWorkspace();
    await t.data("v1/ratelimits.limit", call("foreign"));
    const namespaceId = await namespaceIdOf("foreign");
    const set = { identifier: "u", limit: 1, duration: 1000 };
    for (const selector of [{ namespaceId }, { namespaceName: "foreign" }]) {
      for (const [path, body] of [
        ["setOverride", { ...selector, ...set }],
        ["getOverride", { ...selector, identifier: "u" }],
        ["listOverrides", selector],
        ["deleteOverride", { ...selector, identifier: "u" }],
      ] as const) {
        const reply = await t.call(`v1/ratelimits.${path}`, body, { rootKey });
        expect([path, reply.status, reply.body.error.code]).toEqual([path, 404, "NOT_FOUND"]);
      }
    }
  });

  test.each([
    ["setOverride", { identifier: "u", limit: 1, duration: 1000 }],
    ["getOverride", { identifier: "u" }],
    ["listOverrides", {}],
    ["deleteOverride", { identifier: "u" }],
  ])("v1 %s without permission gets 403 for existing and missing namespaces", async (path, body) => {
    await t.data("v1/ratelimits.limit", call("there"));
    const rootKey = await t.rootKey(["ratelimit.*.limit", "api.*.read_api"]);
    const elsewhere = await t.rootKey(["ratelimit.rlns_other.set_override", "ratelimit.rlns_other.read_override"]);
    for (const namespaceName of ["there", "nowhere"]) {
      const { status, body: response } = await t.call(`v1/ratelimits.${path}`, { ...body, namespaceName }, { rootKey });
      expect([namespaceName, status, response.error.code]).toEqual([namespaceName, 403, "INSUFFICIENT_PERMISSIONS"]);
      expect(response.error.message).toMatch(/ratelimit\.\*\.\w+_override or ratelimit\.<namespaceId>\.\w+_override/);
    }
    if (path === "deleteOverride") return;
    const missing = await t.call(
      `v1/ratelimits.${path}`,
      { ...body, namespaceName: "nowhere" },
      { rootKey: elsewhere },
    );
    expect(missing.status).toBe(404);
  });

  test.each(["set_override", "read_override", "delete_override"])(
    "permission ratelimit.<namespaceId>.%s is sufficient only for that namespace",
    async (action) => {
      const name = `granted ${action}`;
      await t.data("v1/ratelimits.limit", call(name));
      const namespaceId = await namespaceIdOf(name);
      const set = { namespaceId, identifier: "u", limit: 1, duration: 1000 };
      await t.data("v1/ratelimits.setOverride", set);
      const [path, body] = {
        set_override: ["v1/ratelimits.setOverride", set],
        read_override: ["v1/ratelimits.getOverride", { namespaceId, identifier: "u" }],
        delete_override: ["v1/ratelimits.deleteOverride", { namespaceId, identifier: "u" }],
      }[action] as [string, object];
      const other = await t.rootKey([`ratelimit.rlns_other.${action}`]);
      expect((await t.call(path, body, { rootKey: other })).status).toBe(403);
      const own = await t.rootKey([`ratelimit.${namespaceId}.${action}`]);
      expect((await t.call(path, body, { rootKey: own })).status).toBe(200);
    },
  );
});
