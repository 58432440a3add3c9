import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

const FOLDER = join(import.meta.dirname, "migrations");
const FILE_NAME = /^(\d{4})-[a-z0-9-]+(\.concurrently)?\.sql$/;

export interface Migration {
  readonly version: number;
  readonly fileName: string;
  readonly sql: string;
  /**
   * Statements of a file `….concurrently.sql`, each of which runs outside of a transaction; `undefined` if the complete file runs in one
   * transaction.
   */
  readonly indexSteps: readonly IndexStep[] | undefined;
}

/** Statement that creates or drops one index while its table is read and written. */
export interface IndexStep {
  readonly kind: "create" | "drop";
  readonly index: string;
  readonly text: string;
}

/**
 * Returns the migrations of a folder (default: this release's own), oldest first. Throws if two have the same number, a file name is
 * invalid, or a `….concurrently.sql` does anything other than create and drop indexes.
 */
export async function listMigrations(folder = FOLDER): Promise<Migration[]> {
  const fileNames = (await readdir(folder)).filter((fileName) => fileName.endsWith(".sql")).sort();
  const migrations = await Promise.all(fileNames.map((fileName) => readMigration(folder, fileName)));
  if (new Set(migrations.map(({ version }) => version)).size !== migrations.length) {
    throw new Error("two migrations have the same number");
  }
  return migrations;
}

async function readMigration(folder: string, fileName: string): Promise<Migration> {
  const [, version, concurrently] = FILE_NAME.exec(fileName) ?? [];
  if (version === undefined) throw new Error(`migration ${fileName} is not named NNNN-what-it-does.sql`);
  const sql = await readFile(join(folder, fileName), "utf8");
  const indexSteps = concurrently === undefined ? undefined : readIndexSteps(fileName, sql);
  return { version: Number(version), fileName, sql, indexSteps };
}

const CREATE = /^create (?:unique )?index concurrently ([a-z_][a-z0-9_]*) on /;
const DROP = /^drop index concurrently (?:if exists )?([a-z_][a-z0-9_]*)$/;

/**
 * Returns the statements of a file. They must all create or drop indexes: for these, the catalog shows whether they have completed, so an
 * interrupted file can be resumed. `if not exists` is rejected, because it skips the invalid index of an interrupted statement.
 */
function readIndexSteps(fileName: string, sql: string): IndexStep[] {
  const texts = sql
    .replaceAll(/--.*$/gm, "")
    .split(";")
    .map((text) => text.trim())
    .filter((text) => text !== "");
  return texts.map((text) => {
    const flat = text.toLowerCase().replaceAll(/\s+/g, " ");
    const created = CREATE.exec(flat)?.[1];
    if (created !== undefined) return { kind: "create", index: created, text };
    const dropped = DROP.exec(flat)?.[1];
    if (dropped !== undefined) return { kind: "drop", index: dropped, text };
    throw new Error(
      `migration ${fileName} may only hold \`create [unique] index concurrently NAME on …\` and \`drop index concurrently NAME\``,
    );
  });
}
