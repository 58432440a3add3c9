import type { Pool, PoolClient } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createPool } from "../../postgres/pool.ts";
import { createTestDatabase, type TestDatabase } from "../../test/harness/postgres.ts";
import { insertKeys, insertOtherKinds, insertWorkspace } from "../../test/harness/rows.ts";
import { writeStatements } from "./records.ts";

/*
 * Every change of a record leaves a mark. The tables and columns that feed records are not listed here: Postgres reports which ones
 * the statements read. Each of these columns is changed, and rows of each of these tables are deleted and inserted, one by one;
 * then all records are read and compared with what they were, and each one that differs must have its mark.
 */

let database: TestDatabase;
let db: Pool;
let columns: { table: string; column: string; type: string }[];

/** The statements, for all rows. */
const STATEMENTS = writeStatements(
  { workspaces: "array(select w.id from workspaces w)", ids: "array(select a.id from all_ids a)" },
  { isComplete: true },
);

beforeAll(async () => {
  database = await createTestDatabase();
  db = createPool(database.url);
  for (const name of ["one", "two"]) {
    const rows = await insertWorkspace(db, name);
    await insertKeys(db, rows, { to: 2 });
    await insertOtherKinds(db, rows, 2);
    await insertParts(rows.workspaceId);
  }
  await db.query(`create view all_ids as
    select id from workspaces union all select id from apis union all select id from identities union all select hash from keys
    union all select id from roles union all select id from ratelimit_namespaces union all select name from ratelimit_namespaces
    union all select namespace_id || '/' || identifier from ratelimit_overrides union all select id from policies
    union all select former_id from policies where former_id is not null`);
  columns = await feedingColumns();
});
afterAll(async () => {
  await db.end();
  await database.drop();
});

/** One of each part of keys, identities and roles. */
async function insertParts(workspaceId: string): Promise<void> {
  const some = (table: string) => `(select id from ${table} where workspace_id = $1 order by id limit 1)`;
  const [key, identity, role] = ["keys", "identities", "roles"].map(some);
  const permission = some("permissions");
  const statements = [
    `insert into permissions (id, workspace_id, slug, name, created_at)
     select 'perm_' || n || $1, $1, 'slug.' || n, 'n', 1 from generate_series(1, 2) as n`,
    `insert into ratelimit_namespaces (id, workspace_id, name, created_at) values ('rlns_lone' || $1, $1, 'lone', 1)`,
    `insert into key_permissions values (${key}, ${permission}, $1)`,
    `insert into role_permissions values (${role}, ${permission}, $1)`,
    `insert into key_roles values (${key}, ${role}, $1)`,
    `insert into key_credits (key_id, workspace_id, granted) values (${key}, $1, 10)`,
    `insert into ratelimits (id, workspace_id, key_id, name, max_count, duration_ms, auto_apply, created_at)
     values ('rl_k' || $1, $1, ${key}, 'k', 1, 1000, true, 1)`,
    `insert into ratelimits (id, workspace_id, identity_id, name, max_count, duration_ms, auto_apply, created_at)
     values ('rl_i' || $1, $1, ${identity}, 'i', 1, 1000, true, 1)`,
    `update keys set identity_id = ${identity} where id = ${key}`,
  ];
  for (const statement of statements) await db.query(statement, [workspaceId]);
}

/** Postgres records which columns a view reads. */
async function feedingColumns(): Promise<{ table: string; column: string; type: string }[]> {
  for (const [kind, text] of Object.entries(STATEMENTS)) await db.query(`create view "record of ${kind}" as ${text}`);
  const { rows } = await db.query<{ table: string; column: string; type: string }>(
    `select distinct t.relname as table, a.attname as column, format_type(a.atttypid, a.atttypmod) as type
       from pg_depend d
       join pg_rewrite r on r.oid = d.objid
       join pg_class v on v.oid = r.ev_class
       join pg_class t on t.oid = d.refobjid and t.relkind = 'r'
       join pg_attribute a on a.attrelid = t.oid and a.attnum = d.refobjsubid
      where d.classid = 'pg_rewrite'::regclass and d.refclassid = 'pg_class'::regclass and d.refobjsubid > 0
        and v.relname like 'record of %'
      order by 1, 2`,
  );
  return rows;
}

type Records = Map<string, string>;

async function readAll(tx: PoolClient): Promise<Records> {
  const records: Records = new Map();
  for (const kind of Object.keys(STATEMENTS)) {
    const { rows } = await tx.query(`select workspace_id, id, data::text from "record of ${kind}"`);
    for (const { workspace_id, id, data } of rows) records.set(`${kind} ${workspace_id} ${id}`, data);
  }
  return records;
}

/** The records that differ between two reads and have no mark that this transaction left since `after`. */
async function unmarked(tx: PoolClient, before: Records, now: Records, after: number): Promise<string[]> {
  const { rows } = await tx.query<{ name: string }>(
    `select case when o.kind = 'keyId' then 'key ' || k.workspace_id || ' ' || k.hash
                 else o.kind || ' ' || o.workspace_id || ' ' || o.id end as name
       from outbox o
       left join keys k on o.kind = 'keyId' and k.id = o.id
      where o.tx = pg_current_xact_id_if_assigned() and o.seq > $1`,
    [after],
  );
  const marked = new Set(rows.map(({ name }) => name));
  const names = new Set([...before.keys(), ...now.keys()]);
  return [...names].filter((name) => before.get(name) !== now.get(name) && !marked.has(name));
}

const newest = async (tx: PoolClient): Promise<number> =>
  (await tx.query<{ seq: number }>("select coalesce(max(seq), 0) as seq from outbox")).rows[0]?.seq ?? 0;

/** Runs a change and rolls it back. Returns unmarked records and the number of changed ones; undefined when Postgres refused it. */
async function tryChange(change: (tx: PoolClient) => Promise<unknown>) {
  const tx = await db.connect();
  try {
    await tx.query("begin");
    const before = await readAll(tx);
    const after = await newest(tx);
    try {
      await change(tx);
      await tx.query("set constraints all immediate");
    } catch {
      return undefined;
    }
    const now = await readAll(tx);
    const changed = [...new Set([...before.keys(), ...now.keys()])].filter(
      (name) => before.get(name) !== now.get(name),
    );
    return { changed: changed.length, unmarked: await unmarked(tx, before, now, after) };
  } finally {
    await tx.query("rollback");
    tx.release();
  }
}

/** Ids that a reference may have: another workspace, or an object of its own workspace. */
async function idsIn(table: string | undefined, workspaceId: string): Promise<string[]> {
  if (table === undefined) return [];
  const own = table === "workspaces" ? "id <> $1" : "workspace_id = $1";
  const { rows } = await db.query<{ id: string }>(`select id from ${table} where ${own} order by id`, [workspaceId]);
  return rows.map(({ id }) => id);
}

/** Other values than a row has, as SQL, that its constraints may accept. */
function otherValues(column: string, type: string, ids: readonly string[]): string[] {
  if (type === "boolean") return [`not ${column}`];
  if (type === "jsonb") return [`'{"other": 1}'`];
  if (type === "text[]") return ["array['10.9.8.7']"];
  if (type !== "text") return [`coalesce(${column}, 0) + 1`];
  // A name that another row may refer to, a pattern, and every existing id: for columns that refer to something.
  return [`coalesce(${column}, '') || 'x'`, `coalesce(${column}, '') || '*'`, ...ids.map((id) => `'${id}'`)];
}

describe("the columns that feed records", () => {
  test("outbox triggers cover the columns of each record kind", () => {
    const tables = new Set(columns.map(({ table }) => table));
    expect([...tables].sort()).toEqual(
      ["apis", "identities", "key_credits", "key_permissions", "key_roles", "keys", "permissions", "policies"].concat([
        "ratelimit_namespaces",
        "ratelimit_overrides",
        "ratelimits",
        "role_permissions",
        "roles",
        "workspaces",
      ]),
    );
    expect(columns.length).toBeGreaterThan(60);
  });

  test("outbox trigger writes an entry when a column changes in any row", async () => {
    const { rows: references } = await db.query<{ table: string; column: string; target: string }>(
      `select c.conrelid::regclass::text as table, a.attname as column, c.confrelid::regclass::text as target
         from pg_constraint c
         join pg_attribute a on a.attrelid = c.conrelid and a.attnum = c.conkey[1]
        where c.contype = 'f'`,
    );
    const refused: string[] = [];
    for (const { table, column, type } of columns) {
      const target = references.find((r) => r.table === table && r.column === column)?.target;
      let changed = 0;
      const { rows } = await db.query<{ ctid: string; workspace: string }>(
        `select t.ctid::text, ${table === "workspaces" ? "t.id" : "t.workspace_id"} as workspace from ${table} t`,
      );
      for (const { ctid, workspace } of rows) {
        const values = otherValues(column, type, await idsIn(target, workspace));
        for (const value of values) {
          const text = `update ${table} set ${column} = ${value} where ctid = $1 and ${column} is distinct from ${value}`;
          const result = await tryChange((tx) => tx.query(text, [ctid]));
          expect(result?.unmarked ?? [], `${table}.${column} = ${value}`).toEqual([]);
          changed += result?.changed ?? 0;
        }
      }
      if (changed === 0) refused.push(`${table}.${column}`);
    }
    // Ids that others refer to cannot be changed; columns used only in joins are compared through what they join.
    expect(refused.sort()).toEqual([
      "identities.workspace_id",
      "permissions.id",
      "ratelimit_namespaces.workspace_id",
      "roles.workspace_id",
      "workspaces.id",
    ]);
  }, 300_000);

  test("outbox trigger writes an entry when a row is inserted or deleted", async () => {
    for (const table of new Set(columns.map((column) => column.table))) {
      let changed = 0;
      const { rows } = await db.query<{ ctid: string }>(`select ctid::text from ${table}`);
      for (const { ctid } of rows) {
        const removed = await tryChange((tx) => tx.query(`delete from ${table} where ctid = $1`, [ctid]));
        expect(removed?.unmarked ?? [], `delete from ${table}`).toEqual([]);
        changed += removed?.changed ?? 0;
        if (removed === undefined) continue;
        const tx = await db.connect();
        try {
          await tx.query("begin");
          await tx.query(`create temp table removed on commit drop as select * from ${table} where ctid = '${ctid}'`);
          await tx.query(`delete from ${table} where ctid = $1`, [ctid]);
          const [before, after] = [await readAll(tx), await newest(tx)];
          await tx.query(`insert into ${table} select * from removed`);
          expect(await unmarked(tx, before, await readAll(tx), after), `insert into ${table}`).toEqual([]);
        } finally {
          await tx.query("rollback");
          tx.release();
        }
      }
      // A workspace with content cannot be deleted.
      if (table !== "workspaces") expect(changed, table).toBeGreaterThan(0);
    }
  }, 120_000);

  test("outbox trigger sends no NOTIFY, which would serialize all commits", async () => {
    const { rows } = await db.query<{ name: string }>(
      `select p.proname as name
         from pg_proc p
        where p.pronamespace = 'public'::regnamespace and p.prosrc ~* '\\m(pg_)?notify\\M'`,
    );
    expect(rows).toEqual([]);
    const { rows: all } = await db.query("select from pg_proc p where p.prosrc ~ 'outbox_add'");
    expect(all.length).toBeGreaterThan(5);
  });

  test("outbox trigger requests a full projection when a table is truncated", async () => {
    for (const table of new Set([...columns.map((column) => column.table), "root_keys"])) {
      const tx = await db.connect();
      try {
        await tx.query("begin");
        await tx.query(`truncate ${table} cascade`);
        const { rowCount } = await tx.query("select from outbox where kind = 'everything' and id = $1", [table]);
        expect(rowCount, table).toBe(1);
      } finally {
        await tx.query("rollback");
        tx.release();
      }
    }
  });
});
