import type { Socket } from "node:net";
import type { PoolClient } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildTestApp, type TestApp } from "./app.ts";

/* Lists with items of any size: pages are limited by bytes, so that one page cannot exhaust the memory of the server. */

let t: TestApp;
beforeAll(async () => {
  t = await buildTestApp();
});
afterAll(() => t.close());

const MIB = 1_048_576;
/** Maximum size of a response, plus one item that is larger. */
const RESPONSE_BYTES_MAX = 4 * MIB;

/** Counts the bytes received from Postgres, including rows that are read and discarded. */
function countRead(): () => number {
  const before = new Map<Socket, number>();
  t.deps.db.on("acquire", (client: PoolClient) => {
    const { stream } = (client as PoolClient & { connection: { stream: Socket } }).connection;
    if (!before.has(stream)) before.set(stream, stream.bytesRead);
  });
  return () => [...before].reduce((sum, [stream, bytes]) => sum + stream.bytesRead - bytes, 0);
}

/** Runs a statement without triggers, because thousands of outbox entries would take longer than the test. */
async function unheard(text: string, values: unknown[]): Promise<void> {
  const tx = await t.deps.db.connect();
  try {
    await tx.query("begin; set local session_replication_role = replica");
    await tx.query(text, values);
    await tx.query("commit");
  } finally {
    tx.release();
  }
}

interface Paged {
  // biome-ignore lint/suspicious/noExplicitAny: items of any shape.
  readonly items: any[];
  readonly pageSizes: number[];
  readonly largestResponse: number;
  readonly mostRead: number;
}

/** Reads a list to its end. */
async function readAll(path: string, body: object): Promise<Paged> {
  const items: Paged["items"] = [];
  const pageSizes: number[] = [];
  let [largestResponse, mostRead] = [0, 0];
  let cursor: string | undefined;
  do {
    const read = countRead();
    const reply = await t.call(path, { ...body, limit: 100, ...(cursor === undefined ? {} : { cursor }) });
    expect(reply.status).toBe(200);
    mostRead = Math.max(mostRead, read());
    largestResponse = Math.max(largestResponse, JSON.stringify(reply.body).length);
    items.push(...reply.body.data);
    pageSizes.push(reply.body.data.length);
    cursor = reply.body.pagination.cursor;
    t.deps.db.removeAllListeners("acquire");
  } while (cursor !== undefined && pageSizes.length < 100);
  return { items, pageSizes, largestResponse, mostRead };
}

const metaOf = (mebibytes: number) => ({ text: "x".repeat(mebibytes * MIB - 100) });

test("list of keys with large meta has size-limited pages without duplicates", async () => {
  const { apiId } = await t.data("apis.createApi", { name: "large" });
  await t.data("identities.createIdentity", { externalId: "large", meta: metaOf(1) });
  const made: string[] = [];
  for (const mebibytes of [0, 1, 1, 1, 0, 1, 1, 1, 1]) {
    made.push((await t.data("keys.createKey", { apiId, meta: mebibytes === 0 ? {} : metaOf(mebibytes) })).keyId);
  }
  // The meta is larger than the API accepts.
  await unheard("update keys set meta = $2 where id = $1", [made[0], metaOf(9)]);
  for (let i = 0; i < 6; i++) made.push((await t.data("keys.createKey", { apiId, externalId: "large" })).keyId);
  const { items, pageSizes, largestResponse, mostRead } = await readAll("apis.listKeys", { apiId });
  expect(items.map(({ keyId }) => keyId)).toEqual(made.toSorted());
  expect(pageSizes.length).toBeGreaterThan(3);
  expect(Math.min(...pageSizes)).toBeGreaterThan(0);
  expect(largestResponse).toBeLessThan(9 * MIB + 100_000);
  expect(mostRead).toBeLessThan(9 * MIB + 100_000);

  const ofOne = await readAll("apis.listKeys", { apiId, externalId: "large" });
  expect(ofOne.items.map(({ keyId }) => keyId)).toEqual(made.slice(9).toSorted());
  expect(ofOne.largestResponse).toBeLessThan(RESPONSE_BYTES_MAX + 100_000);
  expect(ofOne.mostRead).toBeLessThan(RESPONSE_BYTES_MAX + 100_000);
});

test("list of keys with thousands of permissions and roles has size-limited pages", async () => {
  const { apiId } = await t.data("apis.createApi", { name: "permissions" });
  const workspaceId = t.workspace.id;
  const made: string[] = [];
  for (let i = 0; i < 6; i++) made.push((await t.data("keys.createKey", { apiId })).keyId);
  await t.deps.db.query("insert into roles (id, workspace_id, name, created_at) values ('role_many', $1, 'many', 1)", [
    workspaceId,
  ]);
  const text = `with made as (
                  insert into permissions (id, workspace_id, slug, name, created_at)
                  select 'perm_' || i, $1, rpad('slug.' || i || '.', 120, 'x'), 'p' || i, 1 from generate_series(1, 9000) as i
                  returning id)
                insert into role_permissions (role_id, permission_id, workspace_id) select 'role_many', id, $1 from made`;
  await unheard(text, [workspaceId]);
  await unheard(
    "insert into key_permissions (key_id, permission_id, workspace_id) select k, 'perm_' || i, $1 from unnest($2::text[]) k, generate_series(1, 6000) i",
    [workspaceId, made.slice(0, 3)],
  );
  await unheard(
    "insert into key_roles (key_id, role_id, workspace_id) select k, 'role_many', $1 from unnest($2::text[]) k",
    [workspaceId, made.slice(3)],
  );
  const keys = await readAll("apis.listKeys", { apiId });
  expect(keys.items.map(({ keyId }) => keyId)).toEqual(made.toSorted());
  expect(keys.pageSizes.length).toBeGreaterThan(1);
  expect(keys.mostRead).toBeLessThan(RESPONSE_BYTES_MAX + 100_000);

  for (const name of ["one", "two", "three"]) {
    const { roleId } = await t.data("permissions.createRole", { name });
    await unheard(
      "insert into role_permissions (role_id, permission_id, workspace_id) select $2, 'perm_' || i, $1 from generate_series(1, 9000) i",
      [workspaceId, roleId],
    );
  }
  const roles = await readAll("permissions.listRoles", {});
  expect(roles.items.map(({ name }) => name).toSorted()).toEqual(["many", "one", "three", "two"]);
  expect(roles.items.map(({ permissions }) => permissions.length)).toEqual([9000, 9000, 9000, 9000]);
  expect(roles.pageSizes.length).toBeGreaterThan(1);
  expect(roles.mostRead).toBeLessThan(RESPONSE_BYTES_MAX + 100_000);
});

test("list and search of identities with large meta have size-limited pages", async () => {
  const made: string[] = [];
  for (let i = 0; i < 12; i++) {
    const meta = i % 3 === 0 ? {} : metaOf(1);
    made.push((await t.data("identities.createIdentity", { externalId: `large.${i}`, meta })).identityId);
  }
  for (const body of [{}, { search: "large." }]) {
    const { items, pageSizes, largestResponse, mostRead } = await readAll("identities.listIdentities", body);
    const mine = items.filter(({ externalId }) => /^large\.\d/.test(externalId));
    expect(mine.map(({ id }) => id)).toEqual(made.toSorted());
    expect(pageSizes.length).toBeGreaterThan(1);
    expect(largestResponse).toBeLessThan(RESPONSE_BYTES_MAX + 100_000);
    expect(mostRead).toBeLessThan(RESPONSE_BYTES_MAX + 100_000);
  }
});

test("list of root keys with 1,000 long permissions has size-limited pages", async () => {
  const made: string[] = [];
  for (let i = 0; i < 40; i++) {
    const permissions = Array.from({ length: 1000 }, (_, at) => `api.${"a".repeat(240)}${at}.read_key`);
    made.push((await t.data("admin.createRootKey", { name: `large ${i}`, permissions })).rootKeyId);
  }
  for (const body of [{}, { search: "large" }]) {
    const { items, pageSizes, largestResponse, mostRead } = await readAll("admin.listRootKeys", body);
    expect(items.map(({ rootKeyId }) => rootKeyId).filter((id) => made.includes(id))).toEqual(made.toSorted());
    expect(pageSizes.length).toBeGreaterThan(3);
    expect(largestResponse).toBeLessThan(RESPONSE_BYTES_MAX + 100_000);
    expect(mostRead).toBeLessThan(RESPONSE_BYTES_MAX + 100_000);
  }
});
