import { createHash } from "node:crypto";
import { chmod, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join, relative, resolve } from "node:path";
import { parseArgs, promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import { build as buildByVite } from "vite";
import { processIo } from "../cli/execute.ts";
import { withNotice } from "../cli/progress.ts";

/*
 * Makes dashboard/dist: the files that the api-server serves at /dashboard/, each with its compressed forms beside it, so that
 * no request compresses. With `--if-stale` it builds only when a source is newer than what is there.
 */

const ROOT = resolve(import.meta.dirname, "..");
const SOURCE = join(ROOT, "dashboard");
export const DASHBOARD_DIST = join(SOURCE, "dist");

/** What the build reads: the page itself, what it imports of core/, the libraries, and this file. */
const READ = ["dashboard", "core", "package-lock.json", "scripts/build-dashboard.ts"];

/** Less is not worth a header. */
const COMPRESSED_FROM_BYTES = 512;
const COMPRESSED = /\.(js|css|html|svg)$/;

/** What at least this many pages share is one file; by itself it would be dozens of small ones, which a first load waits for in turn. */
const SHARED_BY_PAGES = 4;
const SHARED = [
  { name: "components", test: /\/dashboard\/(components|api|usage)\//, minShareCount: SHARED_BY_PAGES },
  { name: "controls", test: /\/node_modules\//, minShareCount: SHARED_BY_PAGES },
];

/** In the folder that is served, but no page refers to it: of which sources it was made. */
const STAMP = "made-from";

/** Builds unless what is there was made from the same sources. */
export async function ensureDashboard(): Promise<void> {
  const madeFrom = await readFile(join(DASHBOARD_DIST, STAMP), "utf8").catch(() => undefined);
  if (madeFrom !== (await fingerprint())) await buildDashboard();
}

/** Says on standard error what it builds, how long that takes, and when it is done. */
export const buildDashboard = (): Promise<void> =>
  withNotice(processIo, {}, { doing: `building ${relative(ROOT, DASHBOARD_DIST)}`, takes: "about 10 seconds" }, build);

/**
 * Builds into a new folder that then takes the place of the old one, so that a server on the same files never sees half of it and two
 * builds at a time do no harm.
 */
async function build(): Promise<void> {
  const next = await mkdtemp(join(SOURCE, "dist-"));
  const last = `${next}-before`;
  const madeFrom = await fingerprint();
  const { NODE_ENV } = process.env;
  try {
    // The build follows it, and a run of tests says "test": they would try libraries in their slow form for development.
    process.env.NODE_ENV = "production";
    await buildByVite({
      configFile: false,
      root: SOURCE,
      base: "/dashboard/",
      logLevel: "warn",
      build: {
        outDir: next,
        // A file as data within another is one that its policy would refuse.
        assetsInlineLimit: 0,
        target: "es2023",
        modulePreload: { polyfill: false },
        reportCompressedSize: false,
        chunkSizeWarningLimit: Number.POSITIVE_INFINITY,
        // All of it is some 8 kB over the wire: less than what twenty requests cost.
        cssCodeSplit: false,
        rolldownOptions: {
          output: { codeSplitting: { groups: SHARED } },
          // Libraries say which of their modules are for browsers, which here are all.
          onLog: (level, log, report) => log.code !== "MODULE_LEVEL_DIRECTIVE" && report(level, log),
        },
      },
    });
    await compressBelow(next);
    // A temporary folder is its maker's alone; a server may run as another user.
    await chmod(next, 0o755);
    await writeFile(join(next, STAMP), madeFrom);
    // There may be none, and another build that ends at this moment is as good.
    await rename(DASHBOARD_DIST, last).catch(() => undefined);
    await rename(next, DASHBOARD_DIST).catch((error) => {
      if ((error as NodeJS.ErrnoException).code !== "ENOTEMPTY") throw error;
    });
  } finally {
    if (NODE_ENV === undefined) delete process.env.NODE_ENV;
    else process.env.NODE_ENV = NODE_ENV;
    await Promise.all([next, last].map((folder) => rm(folder, { recursive: true, force: true })));
  }
}

async function compressBelow(folder: string): Promise<void> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  await Promise.all(paths.filter((path) => COMPRESSED.test(path)).map(compressFile));
}

async function compressFile(path: string): Promise<void> {
  const bytes = await readFile(path);
  if (bytes.length < COMPRESSED_FROM_BYTES) return;
  const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
  await writeFile(`${path}.br`, await promisify(brotliCompress)(bytes, { params }));
  await writeFile(`${path}.gz`, await promisify(gzip)(bytes, { level: 9 }));
}

/** A hash over the paths and contents of all that the build reads. */
async function fingerprint(): Promise<string> {
  const paths = (await Promise.all(READ.map((path) => filesOf(join(ROOT, path))))).flat().sort();
  const hash = createHash("sha256");
  for (const path of paths) {
    const content = createHash("sha256").update(await readFile(path));
    hash.update(`${content.digest("hex")}  ${relative(ROOT, path)}\n`);
  }
  return hash.digest("hex");
}

async function filesOf(path: string): Promise<string[]> {
  if ((await stat(path)).isFile()) return [path];
  const entries = await readdir(path, { withFileTypes: true });
  const below = await Promise.all(
    entries
      .filter(({ name }) => !(path === SOURCE && name.startsWith("dist")) && !/\.test\.tsx?$/.test(name))
      .map(({ name }) => filesOf(join(path, name))),
  );
  return below.flat();
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { "if-stale": { type: "boolean", default: false } } });
  await (values["if-stale"] ? ensureDashboard() : buildDashboard());
}
