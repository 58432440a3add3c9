import type { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createPool } from "../../postgres/pool.ts";
import { createTestDatabase, type TestDatabase } from "../../test/harness/postgres.ts";
import { insertRecentChanges, listOutbox } from "./outbox.ts";

let database: TestDatabase;
let db: Pool;
beforeAll(async () => {
  database = await createTestDatabase();
  db = createPool(database.url);
});
afterAll(async () => {
  await db.end();
  await database.drop();
});

test("permission renamed in psql writes outbox entries for its roles and keys", async () => {
  await db.query(`
    insert into workspaces (id, name, created_at) values ('ws_1', 'one', 1);
    insert into apis (id, workspace_id, key_space_id, name, created_at) values ('api_1', 'ws_1', 'ks_1', 'a', 1);
    insert into keys (id, workspace_id, api_id, hash, start, created_at)
    values ('key_direct', 'ws_1', 'api_1', 'hash_direct', 's', 1), ('key_role', 'ws_1', 'api_1', 'hash_role', 's', 1);
    insert into roles (id, workspace_id, name, created_at) values ('role_1', 'ws_1', 'editor', 1);
    insert into permissions (id, workspace_id, slug, name, created_at) values ('perm_1', 'ws_1', 'a.b', 'a.b', 1);
    insert into key_permissions (key_id, permission_id, workspace_id) values ('key_direct', 'perm_1', 'ws_1');
    insert into role_permissions (role_id, permission_id, workspace_id) values ('role_1', 'perm_1', 'ws_1');
    insert into key_roles (key_id, role_id, workspace_id) values ('key_role', 'role_1', 'ws_1');
    delete from outbox`);
  await db.query("update permissions set description = 'no pod needs to know' where id = 'perm_1'");
  expect(await listOutbox(db, { max: 10 })).toEqual([]);
  await db.query("update permissions set slug = 'a.c' where id = 'perm_1'");
  const marks = await listOutbox(db, { max: 10 });
  expect(marks.map(({ kind, id }) => `${kind} ${id}`).sort()).toEqual(["keyId key_direct", "role role_1"]);
});

test("recent changes are put back into the outbox only once, even if Redis loses its data again before they are relayed", async () => {
  await db.query(`
    delete from outbox;
    insert into recent_changes (workspace_id, kind, id, relayed_at)
    select 'ws_1', 'keyId', 'key_' || i % 300, (extract(epoch from clock_timestamp()) * 1000)::bigint
      from generate_series(1, 600) i;
    insert into recent_changes (workspace_id, kind, id, relayed_at) values ('ws_1', 'keyId', 'key_old', 1);
    insert into outbox (workspace_id, kind, id) values ('ws_1', 'keyId', 'key_7'), ('ws_2', 'keyId', 'key_8')`);
  for (let loss = 0; loss < 3; loss++) await insertRecentChanges(db, { keptMs: 60_000 });
  const entries = await listOutbox(db, { max: 1000 });
  const named = entries.map(({ workspaceId, id }) => `${workspaceId} ${id}`);
  expect(named.toSorted()).toEqual([...Array.from({ length: 300 }, (_, i) => `ws_1 key_${i}`), "ws_2 key_8"].sort());
});
