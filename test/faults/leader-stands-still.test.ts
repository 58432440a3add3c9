import { expect, test } from "vitest";
import { waitFor } from "../harness/wait.ts";
import { makeKey } from "./client.ts";
import { openSystem } from "./system.ts";

/* Another relay also takes over when the leader hangs without closing or losing a connection. */

const TAKEOVER_MS = 10_000;

test("hanging relay leader is replaced within ten seconds and reverts no change when it resumes", async () => {
  const system = await openSystem();
  const leader = await system.spawnApi();
  const leads = async () => {
    const text = "select count(*) as leads from pg_stat_activity where application_name = 'postern-relay-lead'";
    const { rows } = await system.db.query<{ leads: number }>(`${text} and datname = current_database()`);
    return rows[0]?.leads ?? 0;
  };
  await waitFor("the first one to lead", async () => (await leads()) === 1);
  const other = await system.api();
  const { apiId, keyId, key } = await makeKey(other);
  const gate = await system.gate(other, { apiId });
  await waitFor("the key to be let through", async () => (await gate.status(key)) === 200);
  expect(other.server.isRelaying()).toBe(false);

  leader.process.kill("SIGSTOP");
  const stoppedAt = performance.now();
  await other.data("keys.updateKey", { keyId, enabled: false });
  await waitFor("the sidecar to refuse", async () => (await gate.status(key)) === 401, {
    deadlineMs: TAKEOVER_MS + 2000,
  });
  expect(performance.now() - stoppedAt).toBeLessThan(TAKEOVER_MS);
  expect(other.server.isRelaying()).toBe(true);

  leader.process.kill("SIGCONT");
  await waitFor("the first one to be served by Postgres again", async () => leader.isReady());
  for (const enabled of [true, false, true, false]) {
    await leader.data("keys.updateKey", { keyId, enabled });
    await waitFor("the sidecar to act", async () => (await gate.status(key)) === (enabled ? 200 : 401), {
      deadlineMs: 5000,
    });
  }
  expect(other.server.isRelaying()).toBe(true);
});
