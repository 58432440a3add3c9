import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire, isBuiltin } from "node:module";
import { dirname, join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { type BuildOptions, build, type Metafile, type Plugin } from "esbuild";
import { ensureDashboard } from "./build-dashboard.ts";

/*
 * Makes of each part one file, `dist/PART/main.mjs`, with its libraries inside and the few files beside it that it reads when
 * it runs; what few processes need is a file beside it, and so is the gate's program, with its compiled code. It starts faster and takes less memory than the sources with their libraries. It is not minified, so that a
 * stack trace from a pod is readable.
 */

const ROOT = resolve(import.meta.dirname, "..");
const MIB = 1024 * 1024;

interface Part {
  readonly entry: string;
  /** The most that it may take, everything together. */
  readonly bytesMax: number;
  /** Copied beside the file: where to, and from which file or folder. */
  readonly files?: Readonly<Record<string, string>>;
  /** Whether what V8 compiles when it starts is kept beside it, because there are many of it. */
  readonly isCompiled?: true;
  /** Whether users run it with a Node of their own, which may be too old. */
  readonly checksNode?: true;
  /** Whether it may open the gRPC ext-auth endpoint, which is a file beside it: a process that does not open it never reads that. */
  readonly hasGrpcExtAuth?: true;
}

/** It has its own copy of what it imports, so nothing with a state may be among that: the caller passes in what decides. */
const GRPC_EXT_AUTH = { entry: "sidecar/ext-auth/grpc-server.ts", file: "grpc-ext-auth.mjs" };

const swagger = (name: string) => ({
  [`node_modules/swagger-ui-dist/${name}`]: createRequire(import.meta.url).resolve(`swagger-ui-dist/${name}`),
});

/** What the api-server reads: its migrations, the dashboard, and what the page at `/docs` is made of. */
const SERVER_FILES = {
  migrations: "api-server/store/migrations",
  dashboard: "dashboard/dist",
  ...swagger("package.json"),
  ...swagger("swagger-ui-bundle.js"),
  ...swagger("swagger-ui.css"),
  ...swagger("favicon-32x32.png"),
  ...swagger("LICENSE"),
};

export const PARTS: Readonly<Record<string, Part>> = {
  sidecar: { entry: "cli/images/sidecar.ts", bytesMax: 4 * MIB, hasGrpcExtAuth: true, isCompiled: true },
  operator: { entry: "cli/images/operator.ts", bytesMax: 10 * MIB },
  "api-server": { entry: "cli/images/api-server.ts", bytesMax: 15 * MIB, files: SERVER_FILES },
  cli: { entry: "cli/main.ts", bytesMax: 20 * MIB, files: SERVER_FILES, hasGrpcExtAuth: true, checksNode: true },
};

/** Writes the part into the folder, which is emptied first. Returns what went into it. */
export async function bundle(name: string, folder: string): Promise<Metafile> {
  const part = PARTS[name];
  if (part === undefined) throw new Error(`there is no part ${name}; there are ${Object.keys(PARTS).join(", ")}`);
  rmSync(folder, { recursive: true, force: true });
  const outfile = join(folder, part.checksNode ? "program.mjs" : "main.mjs");
  const metafile = await (part.isCompiled ? bundleCompiled : bundleFile)(part.entry, outfile);
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

/** The file that checks the version of Node before it loads the program, in syntax that old versions can parse. */
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

/** The program beside the file, with its compiled code; the file runs it. */
async function bundleCompiled(entry: string, outfile: string): Promise<Metafile> {
  const folder = dirname(outfile);
  const metafile = await bundleFile(entry, join(folder, "program.cjs"), {
    format: "cjs",
    banner: { js: "(function (require, module) {" },
    footer: { js: "})" },
    // A script cannot import, but require modules.
    supported: { "dynamic-import": false },
  });
  cpSync(join(ROOT, "scripts/run-program.mjs"), outfile);
  execFileSync(process.execPath, [join(ROOT, "scripts/compile-program.mjs"), folder], { stdio: "ignore", env: {} });
  return metafile;
}

const MODULE = {
  format: "esm",
  // Libraries written for CommonJS call `require`, which does not exist in a module.
  banner: { js: 'const require = process.getBuiltinModule("node:module").createRequire(import.meta.url);' },
} as const;

async function bundleFile(entry: string, outfile: string, form: BuildOptions = MODULE): Promise<Metafile> {
  const { metafile } = await build({
    ...form,
    absWorkingDir: ROOT,
    entryPoints: [entry],
    outfile,
    bundle: true,
    platform: "node",
    target: "node22",
    legalComments: "eof",
    metafile: true,
    logLevel: "warning",
    plugins: [GRPC_EXT_AUTH_APART, LLHTTP_AS_BYTES, COMMANDS_ADDED_CHEAPLY, BUILTINS_ASKED_FOR, LOADED_WHEN_USED],
  });
  // esbuild escapes non-ASCII characters except in comments. One such character makes V8 store the whole source with two bytes per
  // character: 2 MB for every pod.
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
 * The module is a Buffer in the manner of CommonJS. When it is imported, esbuild would give each of its 54,000 bytes a getter: 8 MB of heap for
 * every pod.
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

/**
 * ioredis adds two methods for each of 301 commands to the prototype of a class, and V8 copies the descriptions of all of them each time: 5 MB and
 * 8 ms. It does not for an object that something was deleted from.
 */
const COMMANDS_ADDED_CHEAPLY: Plugin = {
  name: "commands-added-cheaply",
  setup: (build) =>
    build.onLoad({ filter: /\/ioredis\/built\/utils\/Commander\.js$/ }, ({ path }) => {
      const text = readFileSync(path, "utf8");
      const loop = "commands.forEach(";
      if (text.split(loop).length !== 2) throw new Error(`${path} adds its commands in another way than it did`);
      const emptied =
        "Object.assign(Commander.prototype, { a: 0, b: 0 });\ndelete Commander.prototype.a;\ndelete Commander.prototype.b;\n";
      return { contents: text.replace(loop, `${emptied}${loop}`) };
    }),
};

/** What of the libraries few processes need, or none of ours. It is there, and loaded when something of it is first used. */
const RARELY_NEEDED =
  /\/(?:prom-client\/lib\/(?:cluster|pushgateway)|pino\/lib\/transport|ioredis\/built\/cluster\/index|@opentelemetry\/api\/dist\/index)\.c?js$/;

/** What is required by a library becomes a stand-in that loads it when something of it is first used. */
const LOADED_WHEN_USED: Plugin = {
  name: "loaded-when-used",
  setup: (build) => {
    build.onResolve(
      { filter: /(?:^|\/)(?:cluster|pushgateway|transport|api)$/ },
      async ({ kind, path, pluginData, ...rest }) => {
        if (kind !== "require-call" || pluginData === "resolved") return undefined;
        const resolved = await build.resolve(path, { ...rest, kind, pluginData: "resolved" });
        if (!RARELY_NEEDED.test(resolved.path)) return resolved;
        // The licences of what is inside are looked up by paths; this is none.
        const name = relative(join(ROOT, "node_modules"), resolved.path);
        return { path: name, namespace: "when-used", pluginData: resolved.path };
      },
    );
    build.onLoad({ filter: /.*/, namespace: "when-used" }, ({ pluginData: path }) => ({
      resolveDir: dirname(path),
      pluginData: "resolved",
      contents: `
        let loaded;
        const load = () => (loaded ??= require(${JSON.stringify(path)}));
        module.exports = new Proxy(function () {}, {
          apply: (_, self, args) => Reflect.apply(load(), self, args),
          construct: (_, args, target) => Reflect.construct(load(), args, target),
          get: (_, name) => load()[name],
          has: (_, name) => name in load(),
        });`,
    }));
  },
};

/** A property of a module of Node that a module may import by name. */
const NAME = /^(?!(?:arguments|caller|default|length|name|prototype)$)[A-Za-z_$][\w$]*$/;

/** What loads all of fetch when it is read. */
const EXPENSIVE = new Set(["WebSocket", "CloseEvent", "MessageEvent"]);

/** Modules of Node that most processes never use: TLS alone takes 5 MB and 10 ms of a gate. They are loaded when something of them is first used. */
const RARELY_USED = new Set(["node:assert", "node:dns", "node:fs/promises", "node:http2", "node:https", "node:tls"]);

/**
 * When a module of Node is imported, everything that it exports is read, also what no one asked for; some of that is loaded only then. So the bundle
 * asks for the module itself, and reads what is imported. Importing one of what is expensive by name would not build.
 */
const BUILTINS_ASKED_FOR: Plugin = {
  name: "builtins-asked-for",
  setup: (build) => {
    const require = createRequire(import.meta.url);
    build.onResolve({ filter: /^[a-z]/ }, ({ kind, path }) => {
      const name = path.startsWith("node:") ? path : `node:${path}`;
      if (!isBuiltin(name) || (kind !== "import-statement" && kind !== "require-call")) return undefined;
      if (RARELY_USED.has(name)) return { path: name, namespace: "rare-builtin" };
      return kind === "import-statement" ? { path: name, namespace: "builtin" } : undefined;
    });
    build.onLoad({ filter: /.*/, namespace: "builtin" }, ({ path }) => {
      const names = Object.getOwnPropertyNames(require(path)).filter((name) => NAME.test(name) && !EXPENSIVE.has(name));
      const contents = [
        `const builtin = process.getBuiltinModule(${JSON.stringify(path)});`,
        // What is not imported is left out, because to read it has no effect.
        ...names.map((name) => `export const ${name} = /* @__PURE__ */ (() => builtin.${name})();`),
        "export default builtin;",
      ];
      return { contents: contents.join("\n") };
    });
    build.onLoad({ filter: /.*/, namespace: "rare-builtin" }, ({ path }) => {
      const nodes = require(path);
      const contents = [
        `const builtin = () => process.getBuiltinModule(${JSON.stringify(path)});`,
        `const standIn = ${typeof nodes === "function" ? "(...args) => builtin()(...args)" : "{}"};`,
        `for (const name of ${JSON.stringify(Object.getOwnPropertyNames(nodes).filter((name) => NAME.test(name)))})`,
        "  Object.defineProperty(standIn, name, { enumerable: true, get: () => builtin()[name] });",
        "module.exports = standIn;",
      ];
      return { contents: contents.join("\n") };
    });
  },
};

/** The bytes of all files below a folder. */
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
