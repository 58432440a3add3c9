import { createHash, randomUUID } from "node:crypto";
import { parseArgs } from "node:util";
import pg from "pg";
import { processIo } from "../../cli/execute.ts";
import { withProgress } from "../../cli/progress.ts";
import { hashKey } from "../../core/keys/key-string.ts";

/*
 * `npm run bench:seed`: quickly fills a database with keys, for measurements with many of them. A key's string and id
 * follow from its number, so that a benchmark can use any of them.
 */

const CHUNK = 50_000;

/** The string of the n-th key of an API. It is not secret: such a database is only for measurements. */
export const seededKey = (apiId: string, n: number): string => `bench_${apiId}_${n}`;

/** Its id. Like real ids, these do not sort by creation time. */
export const seededKeyId = (apiId: string, n: number): string =>
  `key_${createHash("md5").update(`${apiId}${n}`).digest("hex").slice(0, 24)}`;

/**
 * Makes an API with `count` keys, numbered from 0, and returns its id. It takes a twentieth of the API's time, because the rows
 * are made in the database, by a session that fires no triggers. So nothing is marked as changed, and a running server
 * reads these keys only in its next full projection: seed before it starts. Needs a superuser.
 */
export async function seedKeys(
  databaseUrl: string,
  {
    workspaceId,
    count,
    progress = () => {},
  }: { workspaceId: string; count: number; progress?: (made: number) => void },
): Promise<string> {
  const db = new pg.Client({ connectionString: databaseUrl });
  await db.connect();
  try {
    await db.query("set session_replication_role = replica");
    const apiId = `api_bench${randomUUID().replaceAll("-", "").slice(0, 12)}`;
    const createdAt = Date.now();
    await db.query(
      "insert into apis (id, workspace_id, key_space_id, name, created_at) values ($1, $2, 'ks_' || $1, 'seeded', $3)",
      [apiId, workspaceId, createdAt],
    );
    const restoreIndexes = await dropIndexes(db);
    for (let from = 0; from < count; from += CHUNK) {
      const to = Math.min(from + CHUNK, count) - 1;
      await db.query(
        `insert into keys (id, workspace_id, api_id, hash, start, created_at)
         select 'key_' || left(md5($1 || n), 24), $2, $1,
                encode(sha256(convert_to('bench_' || $1 || '_' || n, 'UTF8')), 'base64'), 'bench', $3
           from generate_series($4::bigint, $5::bigint) as n`,
        [apiId, workspaceId, createdAt, from, to],
      );
      progress(to + 1);
    }
    await restoreIndexes();
    await db.query("analyze keys");
    await checkOne(db, apiId, count - 1);
    return apiId;
  } finally {
    await db.end();
  }
}

/** Drops the indexes of the keys, because filling ten at once takes several times as long as making them afterwards. */
async function dropIndexes(db: pg.Client): Promise<() => Promise<void>> {
  const { rows } = await db.query<{ name: string; definition: string }>(
    `select indexrelid::regclass::text as name, pg_get_indexdef(indexrelid) as definition
       from pg_index
      where indrelid = 'keys'::regclass and not exists (select from pg_constraint where conindid = indexrelid)`,
  );
  for (const { name } of rows) await db.query(`drop index ${name}`);
  return async () => {
    for (const { definition } of rows) await db.query(definition);
  };
}

/** The key strings are computed in SQL and in TypeScript: a server that finds none of the keys would make a useless measurement. */
async function checkOne(db: pg.Client, apiId: string, n: number): Promise<void> {
  const { rows } = await db.query("select hash from keys where id = $1", [seededKeyId(apiId, n)]);
  if (rows[0]?.hash !== hashKey(seededKey(apiId, n))) throw new Error("the seeded keys are not what they are called");
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      "database-url": { type: "string", default: process.env.DATABASE_URL ?? "" },
      workspace: { type: "string", default: "" },
      keys: { type: "string", default: "1000000" },
      help: { type: "boolean", default: false },
    },
  });
  const { "database-url": databaseUrl, workspace, keys, help } = values;
  const count = Number(keys);
  if (help || databaseUrl === "" || workspace === "" || !Number.isSafeInteger(count) || count < 1) {
    console.error(
      "npm run bench:seed -- --workspace ID [--database-url URL] [--keys 1000000]\n\n" +
        "Makes an API with so many keys in a database that was migrated. DATABASE_URL is used when no URL is given.\n" +
        "`postern workspace list` shows the ids. Start the api-server afterwards, or flush its Redis.",
    );
    process.exit(help ? 0 : 2);
  }
  const startedAt = performance.now();
  const apiId = await withProgress(processIo, {}, { doing: "seeding", resources: "keys" }, (progress) =>
    seedKeys(databaseUrl, {
      workspaceId: workspace,
      count,
      progress: (done) => progress.at({ done, total: count }),
    }),
  );
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  console.log(
    `${count} keys in ${seconds} s: API ${apiId}, secrets ${seededKey(apiId, 0)} to ${seededKey(apiId, count - 1)}`,
  );
}
