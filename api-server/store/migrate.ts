import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";

const FOLDER = join(import.meta.dirname, "migrations");
const FILE_NAME = /^(\d{4})-[a-z0-9-]+\.sql$/;

/** Any number that no other advisory lock of ours uses: two replicas that start at once migrate one after the other. */
export const MIGRATION_LOCK = 7_061_001;

interface Migration {
  readonly version: number;
  readonly fileName: string;
}

/**
 * Brings the database up to date: applies the numbered files of `migrations/` that it has not seen yet, in order, each in a
 * transaction of its own together with the row that remembers it. Safe to call from several processes at once.
 */
export async function migrate(databaseUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl, application_name: "postern-migrate" });
  // A connection that is lost fails the statement under way, or the next one; unheard, it would end the process besides.
  client.on("error", () => undefined);
  try {
    await client.connect();
    // Held by the session, so that it spans the transactions and ends with the connection, whatever happens.
    await client.query("select pg_advisory_lock($1)", [MIGRATION_LOCK]);
    await client.query(`create table if not exists schema_migrations (
      version    integer primary key,
      file_name  text not null,
      applied_at timestamptz not null default now()
    )`);
    const { rows } = await client.query<{ version: number }>("select version from schema_migrations");
    const applied = new Set(rows.map((row) => row.version));
    for (const migration of await listMigrations()) {
      if (!applied.has(migration.version)) await apply(client, migration);
    }
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** The migrations of this release, oldest first. Throws when two share a number or a file is not named like one. */
export async function listMigrations(): Promise<Migration[]> {
  const fileNames = (await readdir(FOLDER)).filter((fileName) => fileName.endsWith(".sql")).sort();
  const migrations = fileNames.map((fileName) => {
    const version = FILE_NAME.exec(fileName)?.[1];
    if (version === undefined) throw new Error(`migration ${fileName} is not named NNNN-what-it-does.sql`);
    return { version: Number(version), fileName };
  });
  if (new Set(migrations.map(({ version }) => version)).size !== migrations.length) {
    throw new Error("two migrations have the same number");
  }
  return migrations;
}

async function apply(client: pg.Client, { version, fileName }: Migration): Promise<void> {
  const sql = await readFile(join(FOLDER, fileName), "utf8");
  await client.query("begin");
  try {
    await client.query(sql);
    await client.query("insert into schema_migrations (version, file_name) values ($1, $2)", [version, fileName]);
    await client.query("commit");
  } catch (error) {
    // Over a lost connection it fails as well, and says less than what came before.
    await client.query("rollback").catch(() => undefined);
    throw new Error(`migration ${fileName}`, { cause: error });
  }
}
