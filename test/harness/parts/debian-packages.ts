import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { chmod, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { findBinary } from "./find.ts";
import { cacheFolder } from "./go-build.ts";
import { telling } from "./say.ts";

/*
 * Programs of Debian or Ubuntu packages, unpacked with their dependencies into the user's cache. System packages and apt lists stay
 * unchanged, no service starts, and root is not required.
 */

const run = promisify(execFile);

/** Link by which fish finds its functions: it uses the folders `etc` and `share` next to its own only if both exist. */
const CONFIGURATION = ["usr/etc", "../etc"] as const;

/** Folder of launcher scripts, which let each program find the unpacked libraries. */
const LAUNCHERS = "launchers";

/** Timeout that suits the slowest mirrors. */
const TIMEOUT_MS = 600_000;

export interface Packages {
  readonly packages: readonly string[];
  /** Also searches the backports of this Debian release. Default: false. */
  readonly backports?: boolean;
}

/** Returns the first of `names` among the unpacked programs; `undefined` if the machine has no apt-get. Throws if apt-get fails. */
export async function unpackedProgram(wanted: Packages, names: readonly string[]): Promise<string | undefined> {
  const folder = await unpackPackages(wanted);
  return folder === undefined ? undefined : findBinary(names, join(folder, LAUNCHERS));
}

/** Returns the folder with the package files of a program from `unpackedProgram`. */
export const unpackedRoot = (program: string): string => dirname(dirname(program));

/** Returns the folder with the package files, or `undefined` if the machine has no apt-get. */
async function unpackPackages({ packages, backports = false }: Packages): Promise<string | undefined> {
  const [aptGet, dpkg] = [await findBinary(["apt-get"]), await findBinary(["dpkg-deb"])];
  const codename = /^VERSION_CODENAME=(\w+)$/m.exec(await readFile("/etc/os-release", "utf8").catch(() => ""))?.[1];
  if (aptGet === undefined || dpkg === undefined || codename === undefined) return undefined;
  // A folder from another version of this file is not reused.
  const layout = createHash("sha256").update(LAUNCHER).update(CONFIGURATION.join()).digest("hex").slice(0, 8);
  const folder = join(cacheFolder(), `${codename}-${packages.join("_")}-${layout}`);
  if (await isFolder(folder)) return folder;
  await mkdir(cacheFolder(), { recursive: true });
  const work = await mkdtemp(`${folder}.`);
  try {
    await telling(
      { doing: `unpacking ${packages.join(", ")} of ${codename} into ${folder}`, takes: "half a minute" },
      () => unpack({ work, packages, backports: backports ? codename : undefined, aptGet, dpkg }),
    );
    // The folder appears complete or not at all.
    await rename(join(work, "unpacked"), folder);
  } catch (error) {
    const wasFaster = ["ENOTEMPTY", "EEXIST"].includes((error as NodeJS.ErrnoException).code ?? "");
    if (!wasFaster) throw error;
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  return folder;
}

interface Unpacking {
  readonly work: string;
  readonly packages: readonly string[];
  /** Codename of the Debian release. */
  readonly backports: string | undefined;
  readonly aptGet: string;
  readonly dpkg: string;
}

async function unpack({ work, packages, backports, aptGet, dpkg }: Unpacking): Promise<void> {
  const archives = join(work, "cache/archives");
  for (const folder of [join(work, "lists/partial"), join(archives, "partial")])
    await mkdir(folder, { recursive: true });
  const options = [
    `Dir::State::lists=${join(work, "lists")}`,
    `Dir::Cache=${join(work, "cache")}`,
    "APT::Sandbox::User=",
    "Debug::NoLocking=1",
    ...(backports === undefined ? [] : await sourcesWithBackports(work, backports)),
  ].flatMap((option) => ["-o", option]);
  const limits = { cwd: work, maxBuffer: 64 * 1024 * 1024, timeout: TIMEOUT_MS };
  await run(aptGet, ["-q", ...options, "update"], limits);
  const install = ["install", "--yes", "--reinstall", "--no-install-recommends", "--download-only"];
  await run(aptGet, ["-q", ...options, ...install, ...packages], limits);
  const unpacked = join(work, "unpacked");
  for (const name of await readdir(archives)) {
    if (name.endsWith(".deb")) await run(dpkg, ["-x", join(archives, name), unpacked], limits);
  }
  if (await isFolder(join(unpacked, "usr"))) await symlink(CONFIGURATION[1], join(unpacked, CONFIGURATION[0]));
  await writeLaunchers(unpacked);
}

async function sourcesWithBackports(work: string, codename: string): Promise<string[]> {
  const file = join(work, "sources.list");
  const signed = "[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]";
  const suites = [codename, `${codename}-backports`];
  await writeFile(file, suites.map((suite) => `deb ${signed} http://deb.debian.org/debian ${suite} main\n`).join(""));
  return [`Dir::Etc::sourcelist=${file}`, "Dir::Etc::sourceparts=/dev/null"];
}

/**
 * A program that is not installed finds its libraries, Lua modules and fonts only by these variables. Some packages have private libraries,
 * which their own libraries find by an absolute path: those of `pulseaudio`, which Chromium needs.
 */
const LAUNCHER = `#!/bin/sh
root=$(dirname "$(dirname "$(readlink -f "$0")")")
for folder in "$root"/usr/lib/*-linux-gnu/pulseaudio "$root"/usr/lib/*-linux-gnu "$root"/lib/*-linux-gnu; do
  LD_LIBRARY_PATH=$folder\${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  LUA_CPATH="$folder/lua/5.3/?.so;\${LUA_CPATH:-;}"
done
LUA_PATH="$root/usr/share/lua/5.3/?.lua;\${LUA_PATH:-;}"
if [ -d "$root/etc/fonts" ]; then export FONTCONFIG_PATH="$root/etc/fonts"; fi
export LD_LIBRARY_PATH LUA_PATH LUA_CPATH
`;

async function writeLaunchers(root: string): Promise<void> {
  await mkdir(join(root, LAUNCHERS));
  const postgres = await readdir(join(root, "usr/lib/postgresql")).catch(() => []);
  // The programs of Chromium and Postgres in usr/bin are scripts with absolute paths, so the later folders replace them.
  const own = ["usr/lib/chromium", ...postgres.map((version) => `usr/lib/postgresql/${version}/bin`)];
  for (const folder of ["bin", "sbin", "usr/bin", "usr/sbin", ...own]) {
    for (const name of await readdir(join(root, folder)).catch(() => [])) {
      const file = join(root, LAUNCHERS, name);
      await writeFile(file, `${LAUNCHER}exec "$root/${folder}/${name}" "$@"\n`);
      await chmod(file, 0o755);
    }
  }
}

const isFolder = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
