import { expect, test } from "vitest";
import { RedisKeys } from "../../edge/redis/keys.ts";
import { waitFor } from "../harness/wait.ts";
import type { TestKey } from "./client.ts";
import { whileRebuildsWait } from "./held.ts";
import { openSystem } from "./system.ts";

/*
 * Redis returns without its last changes, and everything is projected again, which takes long with many keys. Uncached keys are served from
 * the remaining data as soon as the lost changes have been rewritten.
 */

const OLD_MS = 11 * 60 * 1000;

test.each([
  { name: "soon, once what it lost is written again", ageMs: 0, isServed: true },
  {
    name: "only from the new projection when it went back by longer than what is kept",
    ageMs: OLD_MS,
    isServed: false,
  },
])("uncached keys are served again after Redis lost data: $name", async ({ ageMs, isServed }) => {
  const system = await openSystem({ ownRedis: true });
  const api = await system.api();
  const { apiId } = await api.data("apis.createApi", { name: "payments" });
  const gate = await system.gate(api, { apiId });
  const [untouched, disabled, deleted, moved] = (await Promise.all(
    Array.from({ length: 4 }, () => api.data("keys.createKey", { apiId, ratelimits: [] })),
  )) as [TestKey, TestKey, TestKey, TestKey];
  await waitFor("all to be projected", async () => (await gate.status(moved.key)) === 200);
  const globalState = new RedisKeys(system.prefix).projectionState("_central");
  await waitFor("the projection to be complete", async () => (await api.edge.writer.state()).complete);
  const carried = () =>
    waitFor("all changes to be carried", async () => {
      const { rowCount } = await system.db.query("select from outbox");
      return rowCount === 0;
    });
  await carried();
  // Pretends that all changes were made an hour ago.
  await system.db.query("delete from recent_changes");
  if (ageMs > 0) await system.raw.hset(globalState, "asOfMs", Date.now() - ageMs);
  await system.raw.save();
  // Redis will lack later changes when it returns.
  await api.data("keys.updateKey", { keyId: disabled.keyId, enabled: false });
  await api.data("keys.deleteKey", { keyId: deleted.keyId });
  const rerolled: TestKey = await api.data("keys.rerollKey", { keyId: moved.keyId, expiration: 0 });
  await carried();

  const seen = new Set<number>();
  const respond = async () => {
    seen.add(await gate.status(disabled.key)).add(await gate.status(deleted.key));
    return gate.status(untouched.key);
  };
  await whileRebuildsWait(system, async () => {
    const before = await api.edge.writer.state();
    await system.redis.restart({ signal: "SIGKILL" });
    await waitFor("another projection to be begun", async () => {
      const { projectionId } = await api.edge.writer.state();
      return projectionId !== undefined && projectionId !== before.projectionId;
    });
    if (isServed) {
      await waitFor("the untouched one to be let in", async () => (await respond()) === 200);
      expect(await gate.status(rerolled.key)).toBe(200);
      expect(await gate.status(`${untouched.key}x`)).toBe(503);
    } else {
      const until = performance.now() + 4_000;
      while (performance.now() < until) expect(await respond()).toBe(503);
    }
    expect((await api.edge.writer.state()).complete).toBe(false);
    expect(await gate.status(moved.key)).not.toBe(200);
  });
  await waitFor("the projection to be complete", async () => (await api.edge.writer.state()).complete);
  await waitFor("the untouched one to be let in", async () => (await respond()) === 200);
  await waitFor("one that is unknown to be refused", async () => (await gate.status(`${untouched.key}x`)) === 401);
  expect(await gate.status(disabled.key)).toBe(401);
  expect(await gate.status(deleted.key)).toBe(401);
  expect([...seen]).not.toContain(200);
});
