import pg from "pg";
import { expect, test } from "vitest";
import { policyBody } from "../../api-server/test/resources.ts";
import { waitFor } from "../harness/wait.ts";
import { makeKey } from "./client.ts";
import { type LocalApi, openSystem, type System } from "./system.ts";

/** Runs statements on another database of the same server. */
async function admin(system: System, statements: readonly string[]): Promise<void> {
  const url = new URL(system.databaseUrl);
  url.pathname = "/postgres";
  const client = new pg.Client({ connectionString: url.href });
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}

async function stop({ server }: LocalApi): Promise<void> {
  await server.close();
}

test("gates and api-servers adopt the state of a restored Postgres, and credits are reloaded", async () => {
  const system = await openSystem();
  const name = new URL(system.databaseUrl).pathname.slice(1);
  const first = await system.api();
  const { apiId, keyId, key } = await makeKey(first);
  const make = (api: LocalApi, body: object = {}) => api.data("keys.createKey", { apiId, ...body });
  const counted = await make(first, { credits: { remaining: 10 } });
  const gate = await system.gate(first, { apiId });
  await waitFor("the key to be let through", async () => (await gate.status(key)) === 200);
  expect(await gate.status(counted.key)).toBe(200);
  const { policyId } = (await first.data("policies.listPolicies", {}))[0];
  expect(policyId).toMatch(/^pol_/);
  await stop(first);
  await system.db.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
  );
  const left = `"${name}_then"`;
  const closeAll = `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`;
  await admin(system, [closeAll, `create database ${left} template "${name}"`]);

  try {
    // The restore will undo these changes.
    const second = await system.api();
    await second.data("keys.updateKey", { keyId, enabled: false });
    await second.data("keys.updateKey", { keyId: counted.keyId, credits: { remaining: 1_000_000 } });
    const later = await make(second);
    await waitFor(
      "the sidecar to act",
      async () => String([await gate.status(key), await gate.status(later.key)]) === "401,200",
    );
    expect(await gate.status(counted.key)).toBe(200);
    const before = (await second.edge.writer.state()).projectionId;
    await stop(second);
    await admin(system, [`drop database "${name}" with (force)`, `create database "${name}" template ${left}`]);

    const third = await system.api();
    await waitFor("another projection", async () => {
      const { complete, projectionId } = await third.edge.writer.state();
      return complete && projectionId !== before;
    });
    await waitFor(
      "the sidecar to do as then",
      async () => String([await gate.status(key), await gate.status(later.key)]) === "200,401",
    );
    expect(await third.code(later.key)).toBe("NOT_FOUND");
    expect((await third.data("keys.verifyKey", { key: counted.key, credits: { cost: 0 } })).credits).toBe(9);
    const statuses: number[] = [];
    for (let i = 0; i < 10; i++) statuses.push(await gate.status(counted.key));
    expect(statuses).toEqual([...Array(9).fill(200), 429]);
    // The api-server continues from the restored state.
    await third.data("keys.updateKey", { keyId, enabled: false });
    await waitFor("the sidecar to refuse", async () => (await gate.status(key)) === 401);
    await third.data("keys.updateKey", { keyId: counted.keyId, credits: { remaining: 1 } });
    expect([await gate.status(counted.key), await gate.status(counted.key)]).toEqual([200, 429]);
    await stop(third);
  } finally {
    await admin(system, [`drop database if exists ${left} with (force)`]);
  }
});

test.each([
  { redis: "goes on with what it has", empty: false },
  { redis: "is emptied, too", empty: true },
])(
  "gate applies a changed policy with the same version after a Postgres restore while Redis $redis",
  async ({ empty }) => {
    const system = await openSystem();
    const name = new URL(system.databaseUrl).pathname.slice(1);
    const first = await system.api();
    const { apiId, key } = await makeKey(first);
    const gate = await system.gate(first, { apiId });
    await waitFor("the key to be let through", async () => (await gate.status(key)) === 200);
    await stop(first);
    const left = `"${name}_then"`;
    const closeAll = `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`;
    await admin(system, [closeAll, `create database ${left} template "${name}"`]);

    try {
      const second = await system.api();
      const refusing = policyBody(apiId, apiId, { rules: [{ permissions: "orders.write" }] });
      const { version } = (await second.data("managed.applyObject", refusing)).policy;
      await waitFor("the gate to refuse", async () => (await gate.status(key)) === 403);
      await stop(second);
      await admin(system, [`drop database "${name}" with (force)`, `create database "${name}" template ${left}`]);
      // Another change gets the version of the lost one before a gate detects the restore.
      const { rows } = await system.db.query("update policies set version = version + 1 returning version");
      expect(rows).toEqual([{ version }]);
      if (empty) await system.raw.del(await system.raw.keys(`${system.prefix}:*`));

      const third = await system.api();
      await waitFor("the gate to enforce what is in force now", async () => (await gate.status(key)) === 200);
      const current = async () => (await third.data("policies.listPolicies", {}))[0];
      await waitFor("the gate to say so", async () => (await current()).dataPlane?.updated === 1);
      // No report of the lost history counts for the current one. An empty Redis cannot detect a lost history.
      if (!empty) expect((await current()).version).toBeGreaterThan(version);
      await stop(third);
    } finally {
      await admin(system, [`drop database if exists ${left} with (force)`]);
    }
  },
);

test("Postgres on another timeline is projected again despite equal sequence numbers", async () => {
  const system = await openSystem();
  const first = await system.api();
  const { key } = await makeKey(first);
  const before = await waitFor("the projection", async () => {
    const { complete, projectionId } = await first.edge.writer.state();
    return complete ? projectionId : undefined;
  });
  await stop(first);
  const unchanged = await system.api();
  await waitFor("it to relay", () => unchanged.server.isRelaying());
  expect(await unchanged.code(key)).toBe("VALID");
  expect((await unchanged.edge.writer.state()).projectionId).toBe(before);
  await stop(unchanged);
  await system.db.query(
    `update settings set value = jsonb_set(value, '{timeline}', '"another"') where name = 'projection' and value ? 'timeline'`,
  );
  const promoted = await system.api();
  await waitFor("another projection", async () => {
    const { complete, projectionId } = await promoted.edge.writer.state();
    return complete && projectionId !== before;
  });
});
