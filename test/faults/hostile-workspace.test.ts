import type { Redis } from "ioredis";
import { expect, test } from "vitest";
import { RedisKeys } from "../../edge/redis/keys.ts";
import { waitFor } from "../harness/wait.ts";
import { makeKey } from "./client.ts";
import { openSystem, type System } from "./system.ts";

/*
 * The Redis user of a workspace can write anything under its prefix. This must not prevent counters and credits of another workspace from
 * being loaded, spent and stored in Postgres.
 */

const MEGABYTE = "x".repeat(1 << 20);

interface Target {
  readonly raw: Redis;
  readonly keys: RedisKeys;
  readonly workspaceId: string;
}

const flood = async (raw: Redis, set: string, idOf: (i: number) => string): Promise<void> => {
  for (let from = 0; from < 1_000_000; from += 10_000) {
    await raw.sadd(set, ...Array.from({ length: 10_000 }, (_, i) => idOf(from + i)));
  }
};

const ATTACKS: ReadonlyArray<{ name: string; attack: (target: Target) => Promise<unknown> }> = [
  {
    name: "strings where sets are expected",
    attack: async ({ raw, keys, workspaceId }) => {
      for (const set of [keys.creditsLoad(workspaceId), keys.creditsDirty(workspaceId)]) {
        await raw.del(set);
        await raw.set(set, "a string");
      }
    },
  },
  {
    name: "hashes and streams where sets are expected",
    attack: async ({ raw, keys, workspaceId }) => {
      await raw.del(keys.creditsLoad(workspaceId), keys.creditsDirty(workspaceId));
      await raw.hset(keys.creditsLoad(workspaceId), "a", "b");
      await raw.xadd(keys.creditsDirty(workspaceId), "*", "a", "b");
    },
  },
  {
    name: "ids with NUL, of a megabyte, empty, and of other bytes",
    attack: async ({ raw, keys, workspaceId }) => {
      const ids = ["key_\0", MEGABYTE, "", "key_ä", "key '", Buffer.from([0xff, 0xfe, 0x00]), "key_that_is_not_there"];
      await raw.sadd(keys.creditsLoad(workspaceId), ...ids);
      await raw.sadd(keys.creditsDirty(workspaceId), ...ids);
      await raw.sadd(keys.creditsLoad(workspaceId), ...Array.from({ length: 20 }, (_, i) => `${MEGABYTE}${i}`));
    },
  },
  {
    name: "a million requests to load counters",
    attack: ({ raw, keys, workspaceId }) => flood(raw, keys.creditsLoad(workspaceId), (i) => `key_${i}`),
  },
  {
    name: "credits that are no numbers, of another type, negative, or beyond all bounds",
    attack: async ({ raw, keys, workspaceId }) => {
      const counters: Record<string, string>[] = [
        { rev: "abc", granted: "10", spent: "1", open: "1" },
        { rev: "1", granted: "1e400", spent: "1", open: "1" },
        { rev: "1", granted: "10", spent: "-7", open: "1" },
        { rev: "1", granted: "nan", spent: "nan", open: "1" },
        { rev: "1", granted: "10", spent: "0.5", open: "1" },
        { rev: "9223372036854775808", granted: "10", spent: "99999999999999999999", open: "1" },
        { rev: "1", granted: "10" },
        { rev: "1", granted: "10", spent: MEGABYTE, open: "1" },
        { spent: "\0", rev: "\0", granted: "\0", open: "\0" },
      ];
      for (const [i, fields] of counters.entries()) {
        await raw.hset(keys.credits(workspaceId, `key_bad${i}`), fields);
        await raw.sadd(keys.creditsDirty(workspaceId), `key_bad${i}`);
      }
      await raw.set(keys.credits(workspaceId, "key_string"), "1");
      await raw.sadd(keys.creditsDirty(workspaceId), "key_string");
      await raw.sadd(keys.creditsLoad(workspaceId), "key_string");
    },
  },
  {
    name: "a million marks",
    attack: ({ raw, keys, workspaceId }) => flood(raw, keys.creditsDirty(workspaceId), (i) => `key_${i}`),
  },
];

/** Creates another workspace with a key of five credits whose counter is not loaded. */
async function aNeighbour(system: System, n: number) {
  const workspaceId = `ws_neighbour${n}`;
  const [apiId, keyId] = [`api_neighbour${n}`, `key_neighbour${n}`];
  await system.db.query("insert into workspaces (id, name, created_at) values ($1, $1, 1)", [workspaceId]);
  await system.db.query(
    "insert into apis (id, workspace_id, key_space_id, name, created_at) values ($1, $2, $1, 'n', 1)",
    [apiId, workspaceId],
  );
  await system.db.query(
    "insert into keys (id, workspace_id, api_id, hash, start, created_at) values ($1, $2, $3, $1, 's', 1)",
    [keyId, workspaceId, apiId],
  );
  await system.db.query("insert into key_credits (key_id, workspace_id, granted) values ($1, $2, 5)", [
    keyId,
    workspaceId,
  ]);
  return { workspaceId, keyId };
}

test("hostile data of one workspace does not delay credits of others", async () => {
  const system = await openSystem({ ownRedis: true });
  const api = await system.api();
  const attacker = await system.workspaceId();
  const keys = new RedisKeys(system.prefix);
  const { key } = await makeKey(api, { credits: { remaining: 1000 } });
  for (const [n, { name, attack }] of ATTACKS.entries()) {
    await attack({ raw: system.raw, keys, workspaceId: attacker });
    const ref = await aNeighbour(system, n);
    const counters = api.edge.counters({ timeoutMs: 1_000 });
    const spend = async () => (await counters.consume({ limits: [], credits: { ...ref, cost: 1 } })).credits;
    // A new workspace is detected within a second.
    await waitFor(`credits to be loaded beside ${name}`, async () => (await spend())?.status === "spent", {
      deadlineMs: 4_000,
    });
    const spent = async () => {
      const { rows } = await system.db.query("select spent from key_credits where key_id = $1", [ref.keyId]);
      return rows[0]?.spent === 1;
    };
    await waitFor(`credits to be written down beside ${name}`, spent, { deadlineMs: 4_000 });
    // The attacker's own keys also work, from the credits in Postgres.
    expect((await api.data("keys.verifyKey", { key })).code).toBe("VALID");
  }
  const metrics = await (await fetch(`${api.url}/metrics`)).text();
  expect(metrics).toMatch(/postern_store_invalid_values_total\{kind="credit-loads"\} [1-9]/);
  expect(metrics).toMatch(/postern_store_invalid_values_total\{kind="credit-marks"\} [1-9]/);
  // The flooded sets are processed in the background.
  for (const set of [keys.creditsLoad(attacker), keys.creditsDirty(attacker)]) {
    await waitFor("the flood to sink", async () => (await system.raw.scard(set)) < 995_000, { deadlineMs: 30_000 });
  }
}, 120_000);

test("invalid counters restart at zero without blocking concurrent requests", async () => {
  const system = await openSystem({ ownRedis: true });
  const api = await system.api();
  const [attacker, other] = ["ws_attacker", "ws_other"];
  const counters = api.edge.counters({ timeoutMs: 2_000 });
  const limitOf = (workspaceId: string, identifier: string) => ({
    workspaceId,
    scope: { kind: "name", value: "writes" } as const,
    identifier,
    limit: 1000,
    durationMs: 3_600_000,
    cost: 1,
    accuracy: "strict" as const,
  });
  const values = [
    "abc",
    "nan",
    "-nan",
    "inf",
    "-5",
    "1e400",
    "1.5",
    "9007199254740991",
    "18446744073709551616",
    "\0",
    "",
  ];
  const spellings = values.flatMap((value) => [
    { window: value, current: "1", previous: "1" },
    { window: "1", current: value, previous: value },
    { window: String(Math.floor(Date.now() / 3_600_000)), current: value, previous: value },
  ]);
  const identifiers = spellings.map((_, i) => `id${i}`);
  // The script determines the counter keys, so it creates them first.
  for (const identifier of identifiers) await counters.consume({ limits: [limitOf(attacker, identifier)] });
  const made = await system.raw.keys(`${system.prefix}:${attacker}:rl:*`);
  expect(made).toHaveLength(spellings.length);
  for (const [i, key] of made.entries()) await system.raw.hset(key, spellings[i] ?? {});
  const asked = [...identifiers, ...identifiers].flatMap((identifier) => [
    counters.consume({ limits: [limitOf(attacker, identifier)] }).then((consumed) => ({ attacker: consumed })),
    counters.consume({ limits: [limitOf(other, identifier)] }).then((consumed) => ({ other: consumed })),
  ]);
  const responses = await Promise.all(asked);
  const ofOthers = responses.flatMap((response) => ("other" in response ? [response.other] : []));
  expect(ofOthers.every(({ passed }) => passed)).toBe(true);
  for (const key of made) await system.raw.set(key, "a string");
  // Uses counters of another process, because this one caches denials.
  const fresh = api.edge.counters({ timeoutMs: 2_000 });
  for (const identifier of identifiers) {
    const { passed, limits } = await fresh.consume({ limits: [limitOf(attacker, identifier)] });
    expect({ passed, remaining: limits[0]?.remaining }).toEqual({ passed: true, remaining: 999 });
  }
}, 60_000);
