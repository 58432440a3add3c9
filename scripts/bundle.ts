import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { build, type Metafile, type Plugin } from "esbuild";
import { ensureDashboard } from "./build-dashboard.ts";

/*
 * Bundles each component with its libraries into `dist/COMPONENT/main.mjs`, and copies the files that the component reads at run time
 * beside it. A bundle starts faster than the sources and needs less memory. Bundles are not minified, so that stack traces are readable.
 */

const ROOT = resolve(import.meta.dirname, "..");
const MIB = 1024 * 1024;

interface Part {
  readonly entry: string;
  /** Maximum total size of the component's files, bytes. */
  readonly bytesMax: number;
  /** Files to copy beside the bundle: source by destination. */
  readonly files?: Readonly<Record<string, string>>;
  /** Whether users run the component with their own version of Node.js, which may be too old. */
  readonly checksNode?: true;
  /**
   * Whether the component can open the gRPC ext-auth endpoint. The endpoint is a separate file, which is loaded only if the endpoint is
   * open.
   */
  readonly hasGrpcExtAuth?: true;
}

/**
 * Entry point of the separate file. The file has its own copies of the modules that it imports, so these must not have state. The caller
 * passes the decision function as an argument.
 */
const GRPC_EXT_AUTH = { entry: "sidecar/ext-auth/grpc-server.ts", file: "grpc-ext-auth.mjs" };

const swagger = (name: string) => ({
  [`node_modules/swagger-ui-dist/${name}`]: createRequire(import.meta.url).resolve(`swagger-ui-dist/${name}`),
});

/** Files that the api-server reads at run time: the dashboard and the assets of `/docs`. */
const SERVER_FILES = {
  migrations: "api-server/db/migrations",
  dashboard: "dashboard/dist",
  ...swagger("package.json"),
  ...swagger("swagger-ui-bundle.js"),
  ...swagger("swagger-ui.css"),
  ...swagger("favicon-32x32.png"),
  ...swagger("LICENSE"),
};

export const PARTS: Readonly<Record<string, Part>> = {
  sidecar: { entry: "cli/images/sidecar.ts", bytesMax: 4 * MIB, hasGrpcExtAuth: true },
  operator: { entry: "cli/images/operator.ts", bytesMax: 10 * MIB },
  "api-server": { entry: "cli/images/api-server.ts", bytesMax: 15 * MIB, files: SERVER_FILES },
  cli: { entry: "cli/main.ts", bytesMax: 20 * MIB, files: SERVER_FILES, hasGrpcExtAuth: true, checksNode: true },
};

/** Empties the directory and writes the component into it. Returns the bundled source files. */
export async function bundle(name: string, folder: string): Promise<Metafile> {
  const part = PARTS[name];
  if (part === undefined) throw new Error(`there is no part ${name}; there are ${Object.keys(PARTS).join(", ")}`);
  rmSync(folder, { recursive: true, force: true });
  const outfile = join(folder, part.checksNode ? "program.mjs" : "main.mjs");
  const metafile = await bundleFile(part.entry, outfile);
  if (part.checksNode) writeFileSync(join(folder, "main.mjs"), nodeCheck(), { mode: 0o755 });
  if (part.hasGrpcExtAuth) {
    const { inputs } = await bundleFile(GRPC_EXT_AUTH.entry, join(folder, GRPC_EXT_AUTH.file));
    Object.assign(metafile.inputs, inputs);
  }
  if (part.files !== undefined && "dashboard" in part.files) await ensureDashboard();
  for (const [to, from] of Object.entries(part.files ?? {})) {
    mkdirSync(dirname(join(folder, to)), { recursive: true });
    cpSync(resolve(ROOT, from), join(folder, to), { recursive: true, filter: (path) => !path.endsWith(".ts") });
  }
  return metafile;
}

/** Returns a file that checks the Node.js version before it loads the program. The file uses only syntax that old versions can parse. */
function nodeCheck(): string {
  const { engines } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { engines: { node: string } };
  const [, major, minor] = /^>=(\d+)\.(\d+)$/.exec(engines.node) ?? [];
  if (minor === undefined) throw new Error(`engines.node is ">=MAJOR.MINOR", not "${engines.node}"`);
  return `#!/usr/bin/env node
const [major, minor] = process.versions.node.split(".").map(Number);
if (major > ${major} || (major === ${major} && minor >= ${minor})) import("./program.mjs");
else {
  console.error("postern: needs Node.js ${major}.${minor} or newer, and this is " + process.versions.node);
  process.exitCode = 1;
}
`;
}

async function bundleFile(entry: string, outfile: string): Promise<Metafile> {
  const { metafile } = await build({
    format: "esm",
    // Defines `require`, which CommonJS libraries call and which does not exist in an ES module.
    banner: { js: 'const require = process.getBuiltinModule("node:module").createRequire(import.meta.url);' },
    absWorkingDir: ROOT,
    entryPoints: [entry],
    outfile,
    bundle: true,
    platform: "node",
    target: "node22",
    legalComments: "eof",
    metafile: true,
    logLevel: "warning",
    plugins: [GRPC_EXT_AUTH_APART, LLHTTP_AS_BYTES],
  });
  // Replaces the non-ASCII characters of comments, which esbuild does not escape. A single such character would make V8 store the complete
  // source with two bytes per character, which costs 2 MB in every pod.
  writeFileSync(outfile, readFileSync(outfile, "utf8").replace(/[^\0-\x7f]/g, "?"));
  return metafile;
}

const GRPC_EXT_AUTH_APART: Plugin = {
  name: "grpc-ext-auth-apart",
  setup: (build) =>
    build.onResolve({ filter: /\/grpc-server\.ts$/ }, ({ kind }) =>
      kind === "dynamic-import" ? { path: `./${GRPC_EXT_AUTH.file}`, external: true } : undefined,
    ),
};

/**
 * Replaces the import of llhttp, a CommonJS module that exports a Buffer. For an import by an ES module, esbuild would define a getter for
 * each of the Buffer's 54,000 bytes, which costs 8 MB of heap in every pod.
 */
const LLHTTP_AS_BYTES: Plugin = {
  name: "llhttp-as-bytes",
  setup: (build) => {
    const { resolve } = createRequire(import.meta.url);
    build.onResolve({ filter: /^undici\/lib\/llhttp\/llhttp_simd-wasm\.js$/ }, ({ kind, path }) =>
      kind === "import-statement" ? { path: relative(ROOT, resolve(path)), namespace: "bytes" } : undefined,
    );
    build.onLoad({ filter: /.*/, namespace: "bytes" }, async ({ path }) => {
      const { default: bytes } = (await import(join(ROOT, path))) as { default: Buffer };
      return { contents: `export default Buffer.from("${bytes.toString("base64")}", "base64");` };
    });
  },
};

/** Returns the total size of all files in a directory. */
export function bytesBelow(folder: string): number {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);
}

if (import.meta.main) {
  const { positionals } = parseArgs({ allowPositionals: true });
  for (const name of positionals.length === 0 ? Object.keys(PARTS) : positionals) {
    const folder = join(ROOT, "dist", name);
    await bundle(name, folder);
    const bytes = bytesBelow(folder);
    const bytesMax = PARTS[name]?.bytesMax ?? 0;
    const megabytes = (count: number) => `${(count / MIB).toFixed(1)} MiB`;
    console.log(`${relative(ROOT, folder)}  ${megabytes(bytes)} of at most ${megabytes(bytesMax)}`);
    if (bytes > bytesMax) process.exitCode = 1;
  }
}
