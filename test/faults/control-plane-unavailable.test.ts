import { expect, test } from "vitest";
import { ADVISORY_LOCKS } from "../../postgres/advisory-locks.ts";
import { waitFor } from "../harness/wait.ts";
import { makeKey } from "./client.ts";
import { openSystem } from "./system.ts";

/*
 * No relay runs: all api-servers are stopped, so no heartbeats arrive and the policy (`onStale`) applies. Tested in real time on a real
 * Redis with short bounds.
 */

test("gates serve cached keys, limits and credits without api-servers until denyAfter", async () => {
  const system = await openSystem();
  const api = await system.spawnApi();
  const { apiId, key } = await makeKey(api, { credits: { remaining: 1000 } });
  const stranger = (await api.data("keys.createKey", { apiId })).key;
  const gate = await system.gate(api, {
    apiId,
    policy: {
      onStale: { after: 1500, action: "Serve", denyAfter: "6s" },
      rules: [
        {
          match: { path: { prefix: "/few" } },
          credits: { cost: 0 },
          ratelimits: [{ name: "few", limit: 2, duration: "1h" }],
        },
        {},
      ],
    },
  });
  expect(await gate.status(key)).toBe(200);

  api.process.kill("SIGKILL");
  await api.process.exited;
  await waitFor("the bound to be passed", async () => ((await gate.stalenessMs()) ?? 0) > 1600);
  expect(await gate.status(key)).toBe(200);
  expect([await gate.status(key, "/few"), await gate.status(key, "/few"), await gate.status(key, "/few")]).toEqual([
    200, 200, 429,
  ]);
  // The gate has never cached this key: its records may be outdated, but they are complete.
  expect([200, 503]).toContain(await gate.status(stranger));
  expect(await gate.status("nobody-has-this-key")).toBe(503);

  await waitFor("denyAfter to be passed", async () => ((await gate.stalenessMs()) ?? 0) > 6100);
  expect(await gate.status(key)).toBe(503);

  const again = await system.spawnApi();
  await waitFor("the gate to open again", async () => (await gate.status(key)) === 200);
  const spent = await again.data("keys.verifyKey", { key, credits: { cost: 0 } });
  expect(spent.credits).toBeLessThanOrEqual(998);
});

test("policy action Deny rejects requests after the first staleness bound", async () => {
  const system = await openSystem();
  const api = await system.spawnApi();
  const { apiId, key } = await makeKey(api);
  const onStale = { after: 1500, action: "Deny" as const, denyAfter: "1m" };
  const gate = await system.gate(api, { apiId, policy: { onStale } });
  expect(await gate.status(key)).toBe(200);
  await api.process.stop();
  await waitFor("the bound to be passed", async () => ((await gate.stalenessMs()) ?? 0) > 1600);
  expect(await gate.status(key)).toBe(503);
});

test("api-server without a relay serves and reports delayed propagation", async () => {
  const system = await openSystem();
  const elsewhere = await system.db.connect();
  await elsewhere.query("select pg_advisory_lock($1)", [ADVISORY_LOCKS.relay]);
  const api = await system.api();
  expect(await api.isReady()).toBe(true);
  expect(await api.degradations()).toEqual(["propagation_delayed"]);
  const change = () =>
    fetch(`${api.url}/v2/apis.createApi`, {
      method: "POST",
      headers: { authorization: `Bearer ${system.rootKey}`, "content-type": "application/json" },
      body: JSON.stringify({ name: "later" }),
    });
  expect((await change()).headers.get("postern-propagation")).toBe("delayed");

  elsewhere.release(true);
  await waitFor("somebody to relay", () => api.isComplete());
  expect((await change()).headers.get("postern-propagation")).toBe(null);
});
