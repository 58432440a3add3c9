import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type DigestedKind, findDigest } from "../../db/managed-digests.ts";
import { buildTestApp, type TestApp } from "../../test/app.ts";

let api: TestApp;
beforeAll(async () => {
  api = await buildTestApp();
});
afterAll(() => api.close());

const as = (manager: string) => ({ headers: { "Postern-Manager": manager } });
type Row = { id: string; manager: string; digest: string };
const list = async (kind: string, cluster: string, more: object = {}): Promise<Row[]> =>
  (await api.call("managed.listDigests", { kind, cluster, limit: 500, ...more })).body.data;
const digestOf = async (kind: DigestedKind, manager: string): Promise<string | undefined> => {
  const found = (await list(kind, manager.split("/")[0] ?? "")).find((row) => row.manager === manager);
  // One rule, two questions.
  const ref = { workspaceId: api.workspace.id, manager };
  expect(await findDigest(api.deps.db, kind, ref)).toBe(found?.digest);
  return found?.digest;
};

/** What a person may change behind a manifest's back; after it, the digest is another one. */
const CHANGES = [
  "update roles set name = 'another' where id = $1",
  "update roles set description = 'Other.' where id = $1",
  "update roles set description = null where id = $1",
  "delete from role_permissions where role_id = $1",
];

describe("the digest of a role", () => {
  test.each(CHANGES)("role digest changes with %s", async (change) => {
    const manager = `roles/Role/shop/r${CHANGES.indexOf(change)}`;
    const name = `role-${CHANGES.indexOf(change)}`;
    const body = { name, description: "Edits.", permissions: ["z.read", "A.Read", "a.write"] };
    const { roleId } = await api.data("permissions.createRole", body, as(manager));
    const before = await digestOf("role", manager);
    expect(await digestOf("role", manager)).toBe(before);
    await api.deps.db.query(change, [roleId]);
    expect(await digestOf("role", manager)).not.toBe(before);
  });

  test("role digest is independent of the order of permissions", async () => {
    const manager = "order/Role/shop/it";
    const body = { name: "ordered", permissions: ["b.read", "a.read"] };
    const { roleId } = await api.data("permissions.createRole", body, as(manager));
    const before = await digestOf("role", manager);
    for (const permissions of [["c.read"], ["a.read", "b.read"]]) {
      await api.data("permissions.setRolePermissions", { roleId, permissions }, as(manager));
    }
    expect(await digestOf("role", manager)).toBe(before);
  });
});

test("override digest changes with each setting and its namespace manager", async () => {
  const manager = "overrides/RatelimitOverride/shop/it";
  const namespaceManager = "overrides/RatelimitNamespace/shop/it";
  const { namespaceId } = await api.data("ratelimit.createNamespace", { name: "limits" }, as(namespaceManager));
  const set = (more: object) =>
    api.data(
      "ratelimit.setOverride",
      { namespace: namespaceId, identifier: "acme", limit: 5, duration: 1000, ...more },
      as(manager),
    );
  await set({});
  const seen = new Set([await digestOf("override", manager)]);
  for (const more of [{ limit: 6 }, { duration: 2000 }, { async: true }]) {
    await set(more);
    seen.add(await digestOf("override", manager));
  }
  await set({});
  expect(seen).toContain(await digestOf("override", manager));
  await api.deps.db.query("update ratelimit_namespaces set manager = null where id = $1", [namespaceId]);
  seen.add(await digestOf("override", manager));
  expect(seen.size).toBe(5);
  expect(await list("namespace", "overrides")).toEqual([]);
});

test("namespace digest changes with its name", async () => {
  const manager = "namespaces/RatelimitNamespace/shop/it";
  const { namespaceId } = await api.data("ratelimit.createNamespace", { name: "one" }, as(manager));
  const before = await digestOf("namespace", manager);
  await api.deps.db.query("update ratelimit_namespaces set name = 'two' where id = $1", [namespaceId]);
  expect(await digestOf("namespace", manager)).not.toBe(before);
});

test("listDigests pages return each managed object of the cluster exactly once", async () => {
  const managers = Array.from({ length: 7 }, (_, i) => `paged/Role/shop/r${i}`);
  for (const manager of managers) {
    await api.data("permissions.createRole", { name: `paged-${manager.at(-1)}`, permissions: [] }, as(manager));
  }
  await api.data("permissions.createRole", { name: "of-another", permissions: [] }, as("paged2/Role/shop/r0"));
  await api.data("permissions.createRole", { name: "of-none", permissions: [] });
  const other = await api.makeWorkspace();
  await api.call(
    "permissions.createRole",
    { name: "paged-0", permissions: [] },
    { rootKey: other.rootKey, ...as("paged/Role/shop/r0") },
  );
  const found: string[] = [];
  let cursor: string | undefined;
  do {
    const { body } = await api.call("managed.listDigests", {
      kind: "role",
      cluster: "paged",
      limit: 3,
      ...(cursor === undefined ? {} : { cursor }),
    });
    found.push(...body.data.map(({ manager }: Row) => manager));
    cursor = body.pagination.cursor;
  } while (cursor !== undefined);
  expect(found.sort()).toEqual(managers);
});
