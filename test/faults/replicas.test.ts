import { expect, test } from "vitest";
import type { RecordRef } from "../../edge/records.ts";
import { readRecords } from "../harness/projected-records.ts";
import { waitFor } from "../harness/wait.ts";
import { type Api, makeKey } from "./client.ts";
import { openSystem, type SpawnedApi, type System } from "./system.ts";

/* Two api-servers: one relays, and both enforce changes. */

const BOUND = { deadlineMs: 2000, everyMs: 5 };

test("one of two api-servers is the relay, and writes reach the other api-server soon", async () => {
  const system = await openSystem();
  const [a, b] = [await system.api(), await system.api()];
  const relaying = () => [a, b].filter(({ server }) => server.isRelaying()).length;
  await waitFor("one to relay", () => relaying() === 1);
  const { keyId, key } = await makeKey(a);
  for (const [here, there] of [
    [a, b],
    [b, a],
  ] as const) {
    expect([await here.code(key), await there.code(key)]).toEqual(["VALID", "VALID"]);
    await here.data("keys.updateKey", { keyId, enabled: false });
    expect(await here.code(key)).toBe("DISABLED");
    await waitFor("the other to refuse", async () => (await there.code(key)) === "DISABLED", BOUND);
    await here.data("keys.updateKey", { keyId, enabled: true });
    expect(await here.code(key)).toBe("VALID");
    await waitFor("the other to accept", async () => (await there.code(key)) === "VALID", BOUND);
    expect(relaying()).toBe(1);
  }
});

test("key unknown on one api-server becomes valid soon after creation on another", async () => {
  const system = await openSystem();
  const [a, b] = [await system.api(), await system.api()];
  const { apiId } = await makeKey(a);
  for (let i = 0; i < 5; i++) {
    const { key } = await a.data("keys.createKey", { apiId });
    expect(await a.code(key)).toBe("VALID");
    await waitFor("the other to know it", async () => (await b.code(key)) === "VALID", BOUND);
  }
});

test("relay fails over when its api-server closes, without losing changes", async () => {
  const system = await openSystem();
  const [a, b] = [await system.api(), await system.api()];
  await waitFor("one to relay", () => a.server.isRelaying() || b.server.isRelaying());
  const [leader, other] = a.server.isRelaying() ? [a, b] : [b, a];
  const { apiId, keyId, key } = await makeKey(leader);
  const gate = await system.gate(leader, { apiId });
  expect(await gate.status(key)).toBe(200);
  const closing = leader.server.close();
  await other.data("keys.updateKey", { keyId, enabled: false });
  await closing;
  await waitFor("the sidecar to refuse", async () => (await gate.status(key)) === 401, { deadlineMs: 5000 });
  // No relay may be running at this time.
  await other.data("keys.updateKey", { keyId, enabled: true });
  await waitFor("the sidecar to accept", async () => (await gate.status(key)) === 200, { deadlineMs: 5000 });
  expect(other.server.isRelaying()).toBe(true);
});

test("kill -9 of the relaying api-server loses no acknowledged change", async () => {
  const system = await openSystem();
  const [a, b] = await Promise.all([system.spawnApi(), system.spawnApi()]);
  const leader = await waitFor("one to relay", async () => ((await relays(a)) ? a : (await relays(b)) ? b : undefined));
  const survivor = leader === a ? b : a;
  const { apiId } = await makeKey(a);
  const gate = await system.gate(survivor, { apiId });

  const clients = [a, b, a, b, a, b].map((api) => changeKeys(api, apiId));
  await waitFor("changes", () => clients.every(({ acknowledged }) => acknowledged.size > 3));
  leader.process.kill("SIGKILL");
  await leader.process.exited;
  const survivors = clients.filter(({ api }) => api === survivor);
  const atKill = survivors.map(({ acknowledged }) => acknowledged.size);
  await waitFor("changes through the survivor", () =>
    survivors.every(({ acknowledged }, i) => acknowledged.size > (atKill[i] ?? 0) + 3),
  );
  await Promise.all(clients.map(({ stop }) => stop()));
  await waitFor("the survivor to relay", () => relays(survivor), { deadlineMs: 5000 });

  await waitFor("an empty outbox", async () => (await system.db.query("select from outbox limit 1")).rowCount === 0);
  await everyKeyIsProjected(system, gate.edge.source);
  for (const { acknowledged } of clients) {
    for (const [key, enabled] of acknowledged) {
      expect(await survivor.code(key)).toBe(enabled ? "VALID" : "DISABLED");
      expect(await gate.status(key)).toBe(enabled ? 200 : 401);
    }
  }
});

async function relays(api: SpawnedApi): Promise<boolean> {
  return /^postern_relay_leading 1$/m.test(await (await fetch(`${api.url}/metrics`)).text());
}

/** Creates keys and disables every second one until stopped or until the api-server has ended. */
function changeKeys(api: Api, apiId: string) {
  /** Last acknowledged enabled state by key. */
  const acknowledged = new Map<string, boolean>();
  let isStopped = false;
  const run = async (): Promise<void> => {
    while (!isStopped) {
      const { key, keyId } = await api.data("keys.createKey", { apiId });
      acknowledged.set(key, true);
      if (acknowledged.size % 2 === 0) continue;
      // The state is unknown until the response arrives.
      acknowledged.delete(key);
      await api.data("keys.updateKey", { keyId, enabled: false });
      acknowledged.set(key, false);
    }
  };
  const running = run().catch(() => undefined);
  return {
    api,
    acknowledged,
    stop: () => {
      isStopped = true;
      return running;
    },
  };
}

/** Asserts that the record of every key in Redis equals the one read from Postgres. */
async function everyKeyIsProjected(
  system: System,
  source: { read(refs: readonly RecordRef[]): Promise<unknown> },
): Promise<void> {
  const { rows } = await system.db.query<{ workspaceId: string; id: string }>(
    `select workspace_id as "workspaceId", hash as id from keys order by id`,
  );
  const refs = rows.map((row) => ({ ...row, kind: "key" as const }));
  expect(refs.length).toBeGreaterThan(20);
  const expected = await readRecords(system.db, refs);
  const batch = (await source.read(refs)) as { records: Array<{ data: unknown }> };
  expect(batch.records.map(({ data }) => data)).toEqual(expected);
}
