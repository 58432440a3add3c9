import { expect, test } from "vitest";
import { waitFor } from "../harness/wait.ts";
import { makeKey } from "./client.ts";
import { makeWorkspace, openSystem } from "./system.ts";

const HOUR = 3_600_000;

test("direct UPDATE in psql is enforced by a gate within two seconds", async () => {
  const system = await openSystem();
  const api = await system.api();
  const { apiId, keyId, key } = await makeKey(api);
  const gate = await system.gate(api, { apiId });
  for (let i = 0; i < 6; i++) {
    const enabled = i % 2 === 1;
    await system.db.query("update keys set enabled = $2 where id = $1", [keyId, enabled]);
    const wanted = enabled ? 200 : 401;
    await waitFor("the sidecar to act", async () => (await gate.status(key)) === wanted, {
      deadlineMs: 2000,
      everyMs: 2,
    });
  }
});

test("workspace created at runtime is usable immediately at API and gate", async () => {
  const system = await openSystem();
  const api = await system.api();
  await makeKey(api);
  const madeAt = performance.now();
  const { workspaceId, rootKey } = await makeWorkspace(system, "ws_fresh");
  const { apiId } = await api.data("apis.createApi", { name: "fresh" }, rootKey);
  const make = (body: object) => api.data("keys.createKey", { apiId, ...body }, rootKey);
  const [plain, counted, limited] = await Promise.all([
    make({}),
    make({ credits: { remaining: 2 } }),
    make({ ratelimits: [{ name: "requests", limit: 2, duration: HOUR, autoApply: true }] }),
  ]);
  const gate = await system.gate(api, { apiId, workspaceId, rootKey });
  await waitFor("the key to be let through", async () => (await gate.status(plain.key)) === 200);
  const tookMs = performance.now() - madeAt;
  const thrice = async (key: string) => [await gate.status(key), await gate.status(key), await gate.status(key)];
  await waitFor("the limited key to be projected", async () => (await gate.status(limited.key, "/")) !== 401);
  expect((await thrice(limited.key)).at(-1)).toBe(429);
  expect(await thrice(counted.key)).toEqual([200, 200, 429]);
  expect(tookMs).toBeLessThan(2000);
});
