import { makeId } from "../../../core/ids.ts";
import type { MigrationAlgorithm } from "../../../core/keys/migration.ts";
import { insertMigration, type MigrationRow } from "../../db/migrations-of-keys.ts";
import { inTransaction } from "../../db/transaction.ts";
import { type Administrator, insertAdministration } from "./administrator.ts";

export const MIGRATION_NAME_LENGTH_MAX = 255;

/** Creates a migration: the target of a key import. */
export async function createMigration(
  administrator: Administrator,
  { workspaceId, name, algorithm }: { workspaceId: string; name: string; algorithm: MigrationAlgorithm },
): Promise<MigrationRow> {
  return inTransaction(administrator, async (tx) => {
    const id = makeId("migration", administrator.randomBytes(16));
    const createdAt = administrator.nowMs();
    await insertMigration(tx, { workspaceId, id, name, algorithm, createdAt });
    await insertAdministration(tx, administrator, workspaceId, [
      { event: "migration.create", description: `Created migration ${id}`, targets: [{ type: "migration", id, name }] },
    ]);
    return { id, name, algorithm, created_at: createdAt };
  });
}
