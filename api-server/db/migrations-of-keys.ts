import type { MigrationAlgorithm } from "../../core/keys/migration.ts";
import type { Queryable } from "../../postgres/queryable.ts";

/* Migrations that import keys from another system. The migrations of the database schema are in migrate.ts. */

export interface MigrationRow {
  readonly id: string;
  readonly name: string;
  readonly algorithm: MigrationAlgorithm;
  readonly created_at: number;
}

export async function insertMigration(
  tx: Queryable,
  migration: {
    readonly workspaceId: string;
    readonly id: string;
    readonly name: string;
    readonly algorithm: MigrationAlgorithm;
    readonly createdAt: number;
  },
): Promise<void> {
  const text = `insert into migrations (id, workspace_id, name, algorithm, created_at)
                values ($1, $2, $3, $4, $5)`;
  const { workspaceId, id, name, algorithm, createdAt } = migration;
  await tx.query({ name: "insert-migration", text, values: [id, workspaceId, name, algorithm, createdAt] });
}

export async function findMigration(
  db: Queryable,
  { workspaceId, migrationId }: { workspaceId: string; migrationId: string },
): Promise<MigrationRow | undefined> {
  const text = `select id, name, algorithm, created_at
                  from migrations
                 where workspace_id = $1 and id = $2`;
  const { rows } = await db.query<MigrationRow>({ name: "find-migration", text, values: [workspaceId, migrationId] });
  return rows[0];
}

/** Returns the migrations of keys, sorted by id. */
export async function listMigrations(
  db: Queryable,
  { workspaceId, rowsMax }: { workspaceId: string; rowsMax: number },
): Promise<MigrationRow[]> {
  const text = `select id, name, algorithm, created_at
                  from migrations
                 where workspace_id = $1
                 order by id
                 limit $2`;
  const { rows } = await db.query<MigrationRow>({ name: "list-migrations", text, values: [workspaceId, rowsMax] });
  return rows;
}
