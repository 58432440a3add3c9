import type { Pool } from "pg";
import { withoutOutbox } from "../../postgres/unmarked-transaction.ts";
import { lockClickhouseMigration } from "../locks.ts";
import { answered, type ClickHouseClient } from "./client.ts";
import { createStatements, type Layout, quoted } from "./schema.ts";

/*
 * ClickHouse has no transactional DDL. Therefore each statement of a migration is idempotent, and a migration is recorded after its last
 * statement. An interrupted migration is repeated from its first statement.
 */

interface Migration {
  readonly id: number;
  readonly name: string;
  readonly statements: (layout: Layout) => readonly string[];
}

/** Migrations in order. A released migration never changes; new ones are appended. */
const MIGRATIONS: readonly Migration[] = [{ id: 1, name: "tables-and-views", statements: createStatements }];

const RECORDS = "postern_migrations";

/**
 * Applies the missing migrations. A Postgres lock ensures that one process at a time does this. Throws `AnalyticsUnavailable`, or the
 * ClickHouse error of a rejected statement.
 */
export async function migrateClickhouse(client: ClickHouseClient, db: Pool, layout: Layout): Promise<void> {
  if ((await missing(client)).length === 0) return;
  await withoutOutbox(db, async (tx) => {
    await lockClickhouseMigration(tx);
    const run = (query: string) => answered(client.command({ query, clickhouse_settings: DDL }));
    const cluster = layout.cluster === undefined ? "" : ` on cluster ${quoted(layout.cluster)}`;
    const engine = layout.cluster === undefined ? "MergeTree" : "ReplicatedMergeTree";
    await run(`create table if not exists ${RECORDS}${cluster} (id UInt32, name String, applied_at DateTime default now())
                 engine = ${engine} order by id`);
    for (const migration of await missing(client)) {
      for (const statement of migration.statements(layout)) await run(statement);
      const values = [{ id: migration.id, name: migration.name }];
      await answered(client.insert({ table: RECORDS, values, format: "JSONEachRow" }));
    }
  });
}

/** Makes a statement with ON CLUSTER return only after every server has run it. */
const DDL = { distributed_ddl_task_timeout: "60", distributed_ddl_output_mode: "throw" } as const;

async function missing(client: ClickHouseClient): Promise<readonly Migration[]> {
  const table = "select count() from system.tables where database = currentDatabase() and name = {name:String}";
  if (Number((await firstColumn(client, table, { name: RECORDS }))[0]) === 0) return MIGRATIONS;
  const applied = new Set((await firstColumn(client, `select distinct id from ${RECORDS}`)).map(Number));
  return MIGRATIONS.filter(({ id }) => !applied.has(id));
}

async function firstColumn(client: ClickHouseClient, query: string, params = {}): Promise<unknown[]> {
  const response = await answered(client.query({ query, query_params: params, format: "JSONCompactEachRow" }));
  return (await answered(response.json<[unknown]>())).map(([value]) => value);
}
