import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { findBinary, findPart } from "./find.ts";
import { cacheFolder } from "./go-build.ts";
import { redisBinary } from "./redis.ts";
import { telling } from "./say.ts";

const run = promisify(execFile);

const ADVICE = "install valkey-server (8 or newer)";
const PACKAGES = ["valkey-server", "valkey-tools"];

/** Returns valkey-server: one of the PATH, else out of Debian's packages, which are unpacked into the user's cache and not installed. */
export const valkeyBinary = (): Promise<string> =>
  findPart("Valkey", ADVICE, [
    { name: "the PATH", attempt: () => findBinary(["valkey-server"]) },
    { name: "Debian's packages", attempt: unpacked },
  ]);

/** Debian has it since 13, and for 12 among the backports. */
async function unpacked(): Promise<string | undefined> {
  const [aptGet, dpkg] = [await findBinary(["apt-get"]), await findBinary(["dpkg-deb"])];
  const codename = /^VERSION_CODENAME=(\w+)$/m.exec(await readFile("/etc/os-release", "utf8").catch(() => ""))?.[1];
  if (aptGet === undefined || dpkg === undefined || codename === undefined) return undefined;
  const folder = join(cacheFolder(), `valkey-${codename}`);
  const program = join(folder, "usr/bin");
  const found = await findBinary(["valkey-server"], program);
  if (found !== undefined) return found;
  // The libraries that it needs are those of redis-server.
  await redisBinary();
  await telling({ doing: `unpacking ${PACKAGES.join(" and ")} of Debian into ${folder}`, takes: "half a minute" }, () =>
    unpack(folder, { aptGet, dpkg, codename }),
  );
  return findBinary(["valkey-server"], program);
}

/** Into a temporary folder that is renamed at the end: it appears complete or not at all. */
async function unpack(folder: string, { aptGet, dpkg, codename }: Record<"aptGet" | "dpkg" | "codename", string>) {
  await mkdir(cacheFolder(), { recursive: true });
  const work = await mkdtemp(`${folder}.`);
  try {
    const sources = join(work, "sources.list");
    const suites = [codename, `${codename}-backports`];
    const signed = "[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]";
    const lines = suites.map((suite) => `deb ${signed} http://deb.debian.org/debian ${suite} main`);
    await writeFile(sources, `${lines.join("\n")}\n`);
    for (const part of ["lists/partial", "cache/archives/partial"]) await mkdir(join(work, part), { recursive: true });
    // Neither the system's lists of packages nor its packages change.
    const own = [
      `Dir::Etc::sourcelist=${sources}`,
      "Dir::Etc::sourceparts=/dev/null",
      `Dir::State::lists=${join(work, "lists")}`,
      `Dir::Cache=${join(work, "cache")}`,
      "APT::Sandbox::User=",
    ].flatMap((option) => ["-o", option]);
    const options = { cwd: work, maxBuffer: 16 * 1024 * 1024, timeout: 300_000 };
    await run(aptGet, ["-q", ...own, "update"], options);
    const { stdout } = await run(aptGet, ["-q", ...own, "--print-uris", "download", ...PACKAGES], options);
    await run(aptGet, ["-q", ...own, "download", ...PACKAGES], options);
    const out = join(work, "unpacked");
    for (const [, file = ""] of stdout.matchAll(/^'\S+' (\S+\.deb) /gm)) await run(dpkg, ["-x", file, out], options);
    await rename(out, folder);
  } catch (error) {
    // Another process was faster.
    if (!["ENOTEMPTY", "EEXIST"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}
