import { once } from "node:events";
import { Agent, get, type IncomingMessage } from "node:http";
import { expect, test } from "vitest";
import { waitFor } from "../harness/wait.ts";
import { type Api, makeKey, type Reply } from "./client.ts";
import { openSystem, type System } from "./system.ts";

const CLOSE_MS_MAX = 5000;

/** Returns the connections of an api-server to Postgres and Redis. */
async function connections({ db, raw }: System): Promise<{ postgres: number; redis: number }> {
  const { rows } = await db.query<{ n: number }>(
    `select count(*) as n
       from pg_stat_activity
      where datname = current_database() and application_name in ('postern-api-server', 'postern-relay')`,
  );
  const clients = String(await raw.call("CLIENT", "LIST"));
  return {
    postgres: rows[0]?.n ?? -1,
    redis: clients.split("\n").filter((line) => /name=(test|postern)-api/.test(line)).length,
  };
}

/** Creates keys and spends credits from several clients until the server has ended. Only acknowledged results count. */
function load(api: Api, { apiId, counted }: { apiId: string; counted: string }) {
  const created: string[] = [];
  let spent = 0;
  /** Spending with a lost reply may have been counted. */
  let unanswered = 0;
  const create = async (): Promise<void> => {
    for (;;) {
      const reply = await api.call("keys.createKey", { apiId });
      if (reply.status !== 200) return;
      created.push(reply.body.data.key);
    }
  };
  const spend = async (): Promise<void> => {
    for (;;) {
      unanswered += 1;
      const reply = await api.call("keys.verifyKey", { key: counted });
      unanswered -= 1;
      if (reply.status !== 200 || reply.body.data.code !== "VALID") return;
      spent += 1;
    }
  };
  const running = [create, create, spend, spend, spend].map((run) => run().catch(() => undefined));
  return { created, spent: () => spent, unanswered: () => unanswered, ended: Promise.all(running) };
}

const storedSpent = async ({ db }: System, keyId: string): Promise<number> =>
  (await db.query<{ spent: number }>("select spent from key_credits where key_id = $1", [keyId])).rows[0]?.spent ?? -1;

test("close() under load completes requests, stores spent credits and ends within five seconds", async () => {
  const system = await openSystem({ ownRedis: true });
  const api = await system.api();
  const { apiId } = await makeKey(api);
  const counted = await api.data("keys.createKey", { apiId, credits: { remaining: 1_000_000 } });
  const loaded = load(api, { apiId, counted: counted.key });
  await waitFor("load", () => loaded.created.length > 10 && loaded.spent() > 50);

  // Some requests wait for a lock held by the test when the shutdown starts.
  const locking = await system.db.connect();
  const held: Promise<Reply>[] = [];
  let closing: Promise<void>;
  const startedAt = performance.now();
  try {
    await locking.query("begin");
    await locking.query("lock table roles in access exclusive mode");
    for (let i = 0; i < 5; i++) held.push(api.call("permissions.createRole", { name: `role_${i}` }));
    await waitFor("them to wait", async () => {
      const { rowCount } = await system.db.query(
        "select from pg_locks where not granted and relation = 'roles'::regclass",
      );
      return rowCount === held.length;
    });
    closing = api.server.close();
    await waitFor("no new connections to be taken", () =>
      fetch(`${api.url}/livez`).then(
        (response) => response.status !== 200,
        () => true,
      ),
    );
  } finally {
    await locking.query("commit");
    locking.release();
  }
  expect((await Promise.all(held)).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  await closing;
  expect(performance.now() - startedAt).toBeLessThan(CLOSE_MS_MAX);
  await loaded.ended;
  await api.edge.close();
  await waitFor("no connection to be left", async () => {
    const { postgres, redis } = await connections(system);
    return postgres === 0 && redis === 0;
  });
  const { rows } = await system.db.query<{ n: number }>("select count(*) as n from keys");
  expect(rows[0]?.n).toBeGreaterThanOrEqual(loaded.created.length + 2);
  const spent = await storedSpent(system, counted.keyId);
  expect(spent).toBeGreaterThanOrEqual(loaded.spent());
  expect(spent).toBeLessThanOrEqual(loaded.spent() + loaded.unanswered());
});

test("SIGTERM under load ends the api-server with code 0 within five seconds", async () => {
  const system = await openSystem();
  const api = await system.spawnApi();
  const { apiId } = await makeKey(api);
  const counted = await api.data("keys.createKey", { apiId, credits: { remaining: 1_000_000 } });
  const loaded = load(api, { apiId, counted: counted.key });
  await waitFor("load", () => loaded.created.length > 10 && loaded.spent() > 50);
  const startedAt = performance.now();
  api.process.kill("SIGTERM");
  expect(await api.process.exited).toEqual({ code: 0, signal: null });
  expect(performance.now() - startedAt).toBeLessThan(CLOSE_MS_MAX);
  await loaded.ended;
  const spent = await storedSpent(system, counted.keyId);
  expect(spent).toBeGreaterThanOrEqual(loaded.spent());
  expect(spent).toBeLessThanOrEqual(loaded.spent() + loaded.unanswered());
  const next = await system.api();
  for (const key of loaded.created) expect(await next.code(key)).toBe("VALID");
  expect((await next.data("keys.verifyKey", { key: counted.key, credits: { cost: 0 } })).credits).toBe(
    1_000_000 - spent,
  );
});

test("closing server asks clients to close their connections and interrupts no request", async () => {
  const system = await openSystem();
  const api = await system.api();
  let answered = 0;
  // Each client sends requests on one connection until a response closes it.
  const clients = Array.from({ length: 8 }, async (): Promise<string> => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    try {
      for (;;) {
        const asked = get(`${api.url}/livez`, { agent });
        const [response] = (await once(asked, "response")) as [IncomingMessage];
        response.resume();
        await once(response, "end");
        answered += 1;
        if (response.headers.connection === "close") return "told to leave";
      }
    } catch (error) {
      return String(error);
    } finally {
      agent.destroy();
    }
  });
  await waitFor("load", () => answered > 100);
  await api.server.close();
  expect(new Set(await Promise.all(clients))).toEqual(new Set(["told to leave"]));
});
