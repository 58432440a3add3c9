import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildTestApp, type TestApp } from "../../test/app.ts";

let api: TestApp;
beforeAll(async () => {
  api = await buildTestApp();
});
afterAll(() => api.close());

interface Bound {
  readonly name: string;
  readonly value: number;
  readonly byDefault: number;
  readonly min: number;
  readonly max: number;
}

async function bounds(rootKey = api.workspace.rootKey): Promise<Map<string, Bound>> {
  const data = await api.data("admin.getSettings", {}, { rootKey });
  return new Map(data.bounds.map((one: Bound) => [one.name, one]));
}

describe("settings", () => {
  test("workspace settings default to values within their bounds", async () => {
    const { rootKey, id } = await api.makeWorkspace();
    expect(await api.data("admin.getSettings", {}, { rootKey })).toMatchObject({
      workspaceId: id,
      name: id,
      enabled: true,
      quotaPerMinute: null,
      analytics: true,
    });
    const all = [...(await bounds(rootKey)).values()];
    expect(all.length).toBeGreaterThan(10);
    for (const { name, value, byDefault, min, max } of all) {
      expect([name, value, byDefault >= min && byDefault <= max]).toEqual([name, byDefault, true]);
    }
  });

  test("workspace settings apply from the next query, and null restores the default", async () => {
    const other = await api.makeWorkspace();
    const body = { query: "SELECT count(*) AS n FROM key_verifications_v1" };
    const query = async () => (await api.call("analytics.getVerifications", body)).status;
    expect(await query()).toBe(200);
    const changed = await api.data("admin.updateQueryLimits", { queriesPerHour: 0, querySeconds: 7 });
    expect(changed.bounds).toContainEqual(expect.objectContaining({ name: "querySeconds", value: 7 }));
    expect(await query()).toBe(429);
    expect((await bounds(other.rootKey)).get("querySeconds")?.value).not.toBe(7);
    await api.data("admin.updateQueryLimits", { queriesPerHour: null });
    expect(await query()).toBe(200);
    expect((await bounds()).get("querySeconds")?.value).toBe(7);
    expect((await api.audit()).filter(({ event }) => event === "workspace.update")).toHaveLength(2);
  });

  test("workspace settings update without changes writes nothing", async () => {
    const before = (await api.audit()).length;
    await api.data("admin.updateQueryLimits", {});
    await api.data("admin.updateSettings", { analytics: true });
    expect(await api.audit()).toHaveLength(before);
  });

  test("workspace can disable its own analytics but cannot change its query limits", async () => {
    const { rootKey } = await api.makeWorkspace();
    const set = (analytics: boolean) => api.data("admin.updateSettings", { analytics }, { rootKey });
    expect((await set(false)).analytics).toBe(false);
    const query = { query: "SELECT count(*) AS n FROM key_verifications_v1" };
    expect((await api.call("analytics.getVerifications", query, { rootKey })).status).not.toBe(200);
    expect((await set(true)).analytics).toBe(true);
    expect((await api.call("admin.updateQueryLimits", { queryRows: 1 }, { rootKey })).status).toBe(403);
  });

  test.each([
    { queryRows: 0 },
    { queriesPerHour: -1 },
    { verificationsDays: 100_000 },
    { querySeconds: 1.5 },
    { quota: 1 },
  ])("workspace settings reject query limits %o", async (body) => {
    expect((await api.call("admin.updateQueryLimits", body)).status).toBe(400);
  });
});
