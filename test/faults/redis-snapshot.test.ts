import { expect, test } from "vitest";
import { waitFor } from "../harness/wait.ts";
import type { TestKey } from "./client.ts";
import { openSystem } from "./system.ts";

/*
 * Redis is restarted from a snapshot from before keys were disabled. A gate that knew of the changes reads those keys from the moment
 * of the restart, as fast as it can: the old records must not be used on any of its connections, whichever reconnects first.
 */

const KEYS = 15;

test.each([
  { name: "while a relay makes a new projection", isRelayThere: true },
  { name: "while no relay is there", isRelayThere: false },
])("keys disabled since the snapshot are never accepted, $name", async ({ isRelayThere }) => {
  const system = await openSystem({ ownRedis: true });
  const api = await system.api();
  await waitFor("the api-server to be ready", () => api.isReady());
  const { apiId } = await api.data("apis.createApi", { name: "payments" });
  const gate = await system.gate(api, { apiId });
  const keys: TestKey[] = [];
  for (let i = 0; i < KEYS; i++) keys.push(await api.data("keys.createKey", { apiId }));
  const last: TestKey = await api.data("keys.createKey", { apiId });
  const good: TestKey = await api.data("keys.createKey", { apiId });
  for (const { key } of [...keys, last, good]) {
    await waitFor("the gate to let it in", async () => (await gate.status(key)) === 200);
  }

  await system.raw.save();
  for (const { keyId } of [...keys, last]) await api.data("keys.updateKey", { keyId, enabled: false });
  // Only the last key is verified, so that for the others the gate knows that they changed, but not yet how.
  await waitFor("the gate to have heard", async () => (await gate.status(last.key)) === 401);
  if (!isRelayThere) await api.server.close();
  await system.redis.kill("SIGKILL");
  const restarted = system.redis.restart({ signal: "SIGKILL" });

  const seen = new Map<number, number>();
  const until = performance.now() + (isRelayThere ? 60_000 : 4_000);
  let refused = 0;
  for (let i = 0; performance.now() < until && refused < KEYS; i++) {
    const status = await gate.status(keys[i % KEYS]?.key ?? "");
    seen.set(status, (seen.get(status) ?? 0) + 1);
    refused = status === 401 ? refused + 1 : 0;
  }
  await restarted;
  expect([...seen.keys()].filter((status) => status !== 401 && status !== 503)).toEqual([]);
  expect(await gate.status(good.key)).toBe(200);
  if (isRelayThere) expect(refused).toBe(KEYS);
  else {
    expect(await gate.source()).toEqual({ usable: false, reason: "the store has gone back in time" });
    expect(await gate.metrics()).toMatch(/postern_sidecar_source_usable 0/);
  }
});
