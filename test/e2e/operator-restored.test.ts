import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Client } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { waitFor } from "../harness/wait.ts";
import { openDirectoryWorld, type TestManifest, untilReason } from "./operator-world.ts";

/* Postgres is restored to an older state while an operator runs, which stores its manifests again. */

let world: Awaited<ReturnType<typeof openDirectoryWorld>>;
beforeAll(async () => {
  world = await openDirectoryWorld();
});
afterAll(() => world?.close());

async function admin(...statements: string[]): Promise<void> {
  const url = Object.assign(new URL(world.databaseUrl), { pathname: "/postgres" }).href;
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}

const manifest = (kind: string, name: string, spec: Record<string, unknown>): TestManifest => ({
  kind,
  metadata: { name, namespace: "shop" },
  spec,
});
const role = (name: string, permissions: readonly string[]) => manifest("Role", name, { name, permissions });
const override = (limit: number) =>
  manifest("RatelimitOverride", "acme", {
    namespaceRef: { name: "public" },
    identifier: "acme",
    limit,
    duration: "1m",
  });
const policy = (permissions: string) =>
  manifest("ApiKeyPolicy", "orders", {
    api: { name: "orders" },
    target: { port: 8080 },
    rules: [{ match: { path: { prefix: "/orders" } }, permissions }],
  });

const permissionsOf = async (name: string): Promise<string[] | undefined> => {
  const { data } = await world.call("permissions.listRoles", {});
  const found = data.find((one: { name: string }) => one.name === name);
  return found?.permissions.map((one: { slug: string }) => one.slug).sort();
};
const limitOf = async (): Promise<number | undefined> =>
  (await world.call("ratelimit.listOverrides", { namespace: "public" })).data?.[0]?.limit;
const ruleOf = async (): Promise<string | undefined> => {
  const [{ policyId }] = (await world.call("policies.listPolicies", {})).data;
  return (await world.call("policies.getPolicy", { policyId })).data.policy.rules[0].permissions;
};

/** Returns the verification code of the key in the Secret of the ApiKey, which is a file here. */
async function codeOfSecret(): Promise<string> {
  const key = await readFile(join(world.stateDir, "secrets/shop/client-key/key"), "utf8");
  return (await world.call("keys.verifyKey", { key })).data.code;
}

test("restored database gets current manifests, and orphans are listed for administrators", async () => {
  const before = [
    role("editor", ["a.read"]),
    role("retired", ["a.read"]),
    manifest("RatelimitNamespace", "public", { name: "public" }),
    override(10),
    policy("orders.read"),
  ];
  for (const one of before) await world.apply(one);
  for (const one of before) await untilReason(world, one, "Succeeded");
  const port = Number(new URL(world.server.url).port);
  const name = new URL(world.databaseUrl).pathname.slice(1);
  const closeAll = `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`;
  await world.server.close();
  await admin(closeAll, `create database "${name}_then" template "${name}"`);
  const closeSecond = await world.reopen(port);

  const after = [
    role("editor", ["a.read", "a.write"]),
    role("later", ["a.read"]),
    override(20),
    policy("orders.write"),
    manifest("ApiKey", "client", { policyRef: { name: "orders" }, secretRef: { name: "client-key" } }),
  ];
  for (const one of after) await world.apply(one);
  await world.remove(role("retired", []));
  const stands = async () =>
    JSON.stringify([await permissionsOf("editor"), await permissionsOf("later"), await limitOf(), await ruleOf()]);
  const wanted = JSON.stringify([["a.read", "a.write"], ["a.read"], 20, "orders.write"]);
  await waitFor("the edits to be in the store", async () => (await stands()) === wanted);
  await waitFor("the key to be there", async () => (await codeOfSecret()) === "VALID");
  await waitFor("the retired role to be gone", async () => (await permissionsOf("retired")) === undefined);

  await closeSecond();
  await admin(closeAll, `drop database "${name}" with (force)`, `create database "${name}" template "${name}_then"`);
  const closeThird = await world.reopen(port);
  try {
    expect(await permissionsOf("editor")).toEqual(["a.read"]);
    await waitFor("the edits to be in the store again", async () => (await stands()) === wanted, {
      deadlineMs: 30_000,
    });
    // The Secret had a key that the restored database does not contain.
    await waitFor("a key that works", async () => (await codeOfSecret()) === "VALID", { deadlineMs: 30_000 });
    for (const one of after) await untilReason(world, one, "Succeeded");
    expect(await permissionsOf("retired")).toEqual(["a.read"]);
    const { id } = (await world.call("permissions.getRole", { role: "retired" })).data;
    const left = await world.call("managed.getObject", { kind: "role", id });
    expect(left.data).toMatchObject({ manager: "test/Role/shop/retired" });
  } finally {
    await closeThird();
    await admin(`drop database if exists "${name}_then" with (force)`);
  }
});
