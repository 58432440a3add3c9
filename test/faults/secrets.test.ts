import { Writable } from "node:stream";
import { pino } from "pino";
import { expect, test } from "vitest";
import { makeKeyString } from "../../core/keys/key-string.ts";
import { waitFor } from "../harness/wait.ts";
import { makeKey } from "./client.ts";
import { openSystem, type System } from "./system.ts";

/** Returns every key, value, field, member and entry in Redis below the prefix as text. */
async function dumpRedis({ raw, prefix }: System): Promise<string> {
  const parts: unknown[] = [];
  for await (const keys of raw.scanStream({ match: `${prefix}:*`, count: 500 }) as AsyncIterable<string[]>) {
    for (const key of keys) {
      const type = await raw.type(key);
      parts.push(key);
      if (type === "string") parts.push(await raw.get(key));
      else if (type === "hash") parts.push(await raw.hgetall(key));
      else if (type === "set") parts.push(await raw.smembers(key));
      else if (type === "zset") parts.push(await raw.zrange(key, "0", "-1"));
      else if (type === "stream") parts.push(await raw.xrange(key, "-", "+"));
      else throw new Error(`${key} is a ${type}, which this function does not read`);
    }
  }
  return JSON.stringify(parts);
}

/** Returns every row of every table as text. */
async function dumpPostgres({ db }: System): Promise<string> {
  const { rows } = await db.query<{ name: string }>(
    "select c.oid::regclass::text as name from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.relkind = 'r' and n.nspname = 'public'",
  );
  const dumps = await Promise.all(
    rows.map(
      async ({ name }) =>
        (await db.query<{ all: string }>(`select json_agg(t)::text as all from ${name} t`)).rows[0]?.all,
    ),
  );
  return dumps.join("\n");
}

test("keys and root keys never appear in logs, Redis or Postgres", async () => {
  const lines: string[] = [];
  const stream = new Writable({
    write(chunk, _encoding, done) {
      lines.push(String(chunk));
      done();
    },
  });
  const system = await openSystem({ log: pino({ level: "trace" }, stream) });
  const api = await system.api();
  const spawned = await system.spawnApi({ POSTERN_LOG_LEVEL: "trace" });
  const { apiId, key } = await makeKey(api, { prefix: "prod", credits: { remaining: 5 } });
  const gate = await system.gate(api, { apiId });
  await waitFor("the key to be let through", async () => (await gate.status(key)) === 200);
  const { key: madeUp } = makeKeyString({ prefix: "prod", randomBytes: new Uint8Array(24).fill(9) });
  for (const server of [api, spawned]) {
    expect(await server.code(key)).toBe("VALID");
    expect(await server.code(madeUp)).toBe("NOT_FOUND");
    // Also sends rejected requests: a wrong root key, an invalid body, and a body that is not JSON.
    expect((await server.call("keys.verifyKey", { key }, madeUp)).status).toBe(401);
    expect((await server.call("keys.verifyKey", { key, wrong: madeUp })).status).toBe(400);
    const broken = await fetch(`${server.url}/v2/keys.verifyKey`, {
      method: "POST",
      headers: { authorization: `Bearer ${system.rootKey}`, "content-type": "application/json" },
      body: `{"key": "${key}"`,
    });
    expect(broken.status).toBe(400);
    await broken.text();
  }
  expect(await gate.status(madeUp)).toBe(401);
  await waitFor(
    "the events to be ingested",
    async () => (await system.db.query("select from verification_events")).rowCount === 3,
  );
  await spawned.process.stop();

  const places = {
    logs: lines.join(""),
    output: spawned.process.stdout() + spawned.process.stderr(),
    redis: await dumpRedis(system),
    postgres: await dumpPostgres(system),
  };
  for (const [place, text] of Object.entries(places)) {
    expect(text.length, place).toBeGreaterThan(100);
    for (const secret of [key, madeUp, system.rootKey]) {
      // Checks the complete key and the part after its visible start.
      expect(text.includes(secret), place).toBe(false);
      expect(text.includes(secret.slice(secret.indexOf("_") + 6)), place).toBe(false);
    }
  }
});
