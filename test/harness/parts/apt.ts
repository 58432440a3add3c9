import { execFile } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { findBinary } from "./find.ts";
import { telling } from "./say.ts";

const run = promisify(execFile);

const installing = new Map<string, Promise<void>>();

/** Waits this long for another program that installs packages, and for the slowest of mirrors. */
const WAIT_MS = 600_000;

/**
 * Installs a package of Debian once, where that needs no questions: as root, with apt-get. Returns the first of `names` that is on the
 * PATH then; undefined where it cannot be installed.
 */
export async function installedBinary(aptPackage: string, names: readonly string[]): Promise<string | undefined> {
  return (await installPackage(aptPackage)) ? await findBinary(names) : undefined;
}

/** Whether a package of Debian is installed afterwards: false where it cannot be, an error of apt-get's where that failed. */
export async function installPackage(aptPackage: string): Promise<boolean> {
  if (process.getuid?.() !== 0 || (await findBinary(["apt-get"])) === undefined) return false;
  const done = installing.get(aptPackage) ?? install(aptPackage);
  installing.set(aptPackage, done);
  await done;
  return true;
}

/** Files of a run that need one package at the same time have a process each, and two of apt-get destroy one another's downloads. */
async function install(aptPackage: string): Promise<void> {
  const update = "apt-get update -q";
  const args = `-y -q --no-install-recommends -o DPkg::Lock::Timeout=${WAIT_MS / 1000}`;
  // Only the program is needed: this variable pretends the one-user runlevel, in which Debian starts no service of a new package.
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1" };
  const command = [
    join(tmpdir(), "postern-apt.lock"),
    "sh",
    "-c",
    `${update} && apt-get install ${args} "$0"`,
    aptPackage,
  ];
  await telling({ doing: `installing ${aptPackage} with apt-get`, takes: "half a minute" }, () =>
    run("flock", command, { env, timeout: WAIT_MS, maxBuffer: 64 * 1024 * 1024 }),
  );
}
