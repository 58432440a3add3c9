import { readFile } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { expect, test } from "vitest";
import { policyIdOf } from "../../core/policies/policy-id.ts";
import { jsonOf } from "../../edge/projection/contract.ts";
import { createTestDatabase } from "../../test/harness/postgres.ts";
import { listRecordRefs, readSomeRecords } from "./records.ts";

const MIGRATION = join(import.meta.dirname, "migrations", "0025-policy-ids.sql");

test("migration projects older policies under both former and new ids", async () => {
  const database = await createTestDatabase();
  const db = new pg.Client({ connectionString: database.url });
  await db.connect();
  try {
    const managers = ["main/ApiKeyPolicy/shop/orders", "main/ApiKeyPolicy/shop/gone", "main/ApiKeyPolicy/lab/a.b_c-d"];
    const [first, gone, second] = managers;
    await db.query(`
      drop trigger outbox on policies;
      drop function outbox_policies();
      alter table policies drop column former_id;
      create trigger outbox after insert or update or delete on policies for each row execute function outbox_entity('policy');
      insert into workspaces (id, name, created_at) values ('ws_1', 'one', 0), ('ws_2', 'two', 0);
      insert into apis (id, workspace_id, key_space_id, name, created_at)
      values ('api_1', 'ws_1', 'ks_1', 'api', 0), ('api_2', 'ws_2', 'ks_2', 'api', 0);
      insert into policies (id, workspace_id, api_id, name, uid, generation, policy, manager, created_at, deleted_at)
      values ('pol_z', 'ws_1', 'api_1', 'main/shop/orders', 'u', 1, '{}', '${first}', 1, null),
             ('pol_y', 'ws_1', 'api_1', 'main/shop/gone', 'u', 1, '{}', '${gone}', 1, 2),
             ('pol_x', 'ws_2', 'api_2', 'main/shop/orders', 'u', 1, '{}', '${first}', 1, null),
             ('pol_w', 'ws_2', 'api_2', 'main/lab/a.b_c-d', 'u', 1, '{}', '${second}', 1, null),
             ('pol_v', 'ws_2', 'api_2', 'by/a/caller', 'u', 1, '{}', null, 1, null);
      truncate outbox`);
    await db.query(await readFile(MIGRATION, "utf8"));

    const derived = (workspaceId: string, manager = "") => policyIdOf({ workspaceId, manager });
    const named = [derived("ws_1", first), derived("ws_2", first), derived("ws_2", second)];
    const { rows } = await db.query<{ id: string; former_id: string }>(
      "select id, former_id from policies order by former_id, id",
    );
    expect(rows).toEqual([
      { id: named[2], former_id: "pol_w" },
      { id: named[1], former_id: "pol_x" },
      { id: named[0], former_id: "pol_z" },
      { id: "pol_v", former_id: null },
      { id: "pol_y", former_id: null },
    ]);
    // A relay of the release before finds nothing under a former id, so the migration leaves it no mark for one.
    const marked = await db.query<{ id: string }>("select id from outbox where kind = 'policy'");
    expect(marked.rows.map(({ id }) => id).sort()).toEqual([...named].sort());

    const page = await listRecordRefs(db, { kind: "policy", after: "", max: 100 });
    expect(page.refs.map(({ id }) => id)).toEqual([...named, "pol_v", "pol_w", "pol_x", "pol_z"].sort());
    const { writes } = await readSomeRecords(db, page.refs, { bytesMax: 1_000_000 });
    const policyIds = writes.map((write) => [write.ref.id, JSON.parse(jsonOf(write) ?? "{}").policyId]);
    expect(Object.fromEntries(policyIds)).toMatchObject({
      pol_z: named[0],
      pol_x: named[1],
      pol_w: named[2],
      pol_v: "pol_v",
    });

    await db.query("truncate outbox");
    await db.query("update policies set version = 2 where id = $1", [named[0]]);
    const changed = await db.query<{ id: string }>("select id from outbox");
    expect(changed.rows.map(({ id }) => id).sort()).toEqual([named[0], "pol_z"].sort());
  } finally {
    await db.end();
    await database.drop();
  }
});
