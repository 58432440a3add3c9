import { readFile } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { expect, test } from "vitest";
import { createTestDatabase } from "../../test/harness/postgres.ts";

const MIGRATION = join(import.meta.dirname, "migrations", "0005-one-key-of-a-manager.sql");

test("migration keeps the manager of only the oldest of several managed keys", async () => {
  const database = await createTestDatabase();
  const db = new pg.Client({ connectionString: database.url });
  await db.connect();
  try {
    await db.query(`
      drop index keys_manager;
      create unique index keys_manager on keys (workspace_id, manager, name) where manager is not null and deleted_at is null;
      insert into workspaces (id, name, created_at) values ('ws', 'ws', 0);
      insert into apis (id, workspace_id, key_space_id, name, created_at) values ('api', 'ws', 'ks', 'api', 0);
      insert into keys (id, workspace_id, api_id, hash, start, name, manager, created_at, deleted_at)
      values ('deleted', 'ws', 'api', 'h1', '', null, 'm', 1, 2),
             ('oldest', 'ws', 'api', 'h2', '', null, 'm', 2, null),
             ('younger', 'ws', 'api', 'h3', '', null, 'm', 3, null),
             ('youngest', 'ws', 'api', 'h4', '', null, 'm', 3, null),
             ('named', 'ws', 'api', 'h5', '', 'name', 'm', 3, null),
             ('of another', 'ws', 'api', 'h6', '', null, 'n', 3, null);`);
    await db.query(await readFile(MIGRATION, "utf8"));
    const { rows } = await db.query("select id from keys where manager is not null order by id");
    expect(rows.map(({ id }) => id)).toEqual(["deleted", "named", "of another", "oldest"]);
    const another = `insert into keys (id, workspace_id, api_id, hash, start, manager, created_at)
                     values ('another', 'ws', 'api', 'h7', '', 'm', 4)`;
    await expect(db.query(another)).rejects.toMatchObject({ constraint: "keys_manager" });
  } finally {
    await db.end();
  }
});
