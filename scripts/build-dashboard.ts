import { createHash } from "node:crypto";
import { chmod, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join, relative, resolve } from "node:path";
import { parseArgs, promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import { build as buildByVite } from "vite";
import { processIo } from "../cli/execute.ts";
import { withNotice } from "../cli/progress.ts";

/*
 * Builds dashboard/dist, the files that the api-server serves at /dashboard/. The build also writes compressed copies, so that the
 * api-server compresses nothing at request time. With `--if-stale` the build runs only if a source has changed.
 */

const ROOT = resolve(import.meta.dirname, "..");
const SOURCE = join(ROOT, "dashboard");
export const DASHBOARD_DIST = join(SOURCE, "dist");

/** Inputs of the build: the dashboard, its imports from core/, the libraries, and this file. */
const READ = ["dashboard", "core", "package-lock.json", "scripts/build-dashboard.ts"];

/** Minimum size of a file to compress. */
const COMPRESSED_FROM_BYTES = 512;
const COMPRESSED = /\.(js|css|html|svg)$/;

/**
 * A module that at least this many pages share moves to a common file. Without common files, the first load would fetch dozens of small
 * files.
 */
const SHARED_BY_PAGES = 12;
const SHARED = [
  // The table has a separate file, because Home, which most people open first, has no table.
  {
    name: "table",
    test: /tanstack\/(virtual-core|react-virtual)|components\/(table|table-foot|use-selection)\./,
    priority: 1,
    minShareCount: 2,
    includeDependenciesRecursively: false,
  },
  { name: "components", test: /\/dashboard\/(components|api|usage)\//, minShareCount: SHARED_BY_PAGES },
  { name: "controls", test: /\/node_modules\//, minShareCount: SHARED_BY_PAGES },
];

/** Name of the file with the fingerprint of the sources. The file is in the served directory, but no page links to it. */
const STAMP = "made-from";

/** Builds the dashboard unless the existing build has the current fingerprint. */
export async function ensureDashboard(): Promise<void> {
  const madeFrom = await readFile(join(DASHBOARD_DIST, STAMP), "utf8").catch(() => undefined);
  if (madeFrom !== (await fingerprint())) await buildDashboard();
}

/** Builds the dashboard, with a notice on standard error at the start and at the end. */
export const buildDashboard = (): Promise<void> =>
  withNotice(processIo, {}, { doing: `building ${relative(ROOT, DASHBOARD_DIST)}`, takes: "about 10 seconds" }, build);

/**
 * Builds into a new directory and then replaces the old one. So a server never reads an incomplete build, and builds can run concurrently.
 */
async function build(): Promise<void> {
  const next = await mkdtemp(join(SOURCE, "dist-"));
  const last = `${next}-before`;
  const madeFrom = await fingerprint();
  const { NODE_ENV } = process.env;
  try {
    // Vite reads NODE_ENV. A test run sets it to "test", which would select slow development versions of libraries.
    process.env.NODE_ENV = "production";
    await buildByVite({
      configFile: false,
      root: SOURCE,
      base: "/dashboard/",
      logLevel: "warn",
      build: {
        outDir: next,
        // Keeps assets in files, because the Content-Security-Policy of the dashboard forbids data URLs.
        assetsInlineLimit: 0,
        target: "es2023",
        modulePreload: { polyfill: false },
        reportCompressedSize: false,
        chunkSizeWarningLimit: Number.POSITIVE_INFINITY,
        // Writes a single style file: it has about 8 kB compressed, which is cheaper than twenty requests for small files.
        cssCodeSplit: false,
        rolldownOptions: {
          output: { codeSplitting: { groups: SHARED } },
          // Hides warnings about directives that mark a library's modules for browsers, because all modules here run in browsers.
          onLog: (level, log, report) => log.code !== "MODULE_LEVEL_DIRECTIVE" && report(level, log),
        },
      },
    });
    await compressBelow(next);
    // Makes the directory readable: a temporary directory is readable only by its owner, but the server may run as another user.
    await chmod(next, 0o755);
    await writeFile(join(next, STAMP), madeFrom);
    // Ignores a missing directory. A concurrent build may have moved it, and the result of that build is equivalent.
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

/** Returns a hash of the paths and contents of all inputs. */
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
