import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { unpackedProgram, unpackedRoot } from "../../harness/parts/debian-packages.ts";
import { findBinary } from "../../harness/parts/find.ts";
import { freePort } from "../../harness/ports.ts";
import { startProcess } from "../../harness/process.ts";
import type { Running } from "../stack.ts";

/*
 * What a user would take in place of a gate: nginx of Debian's packages, with the configurations beside this file. Each has one
 * worker process, whose CPU time is what is measured.
 */

const PACKAGES = ["nginx-light", "libnginx-mod-http-lua", "lua-nginx-redis"];
const MODULES = "usr/lib/nginx/modules";
const LUA_REDIS = "usr/share/lua/5.1/nginx/redis.lua";
const LUA_FILES = [join(MODULES, "ndk_http_module.so"), join(MODULES, "ngx_http_lua_module.so"), LUA_REDIS];

export interface NginxPrograms {
  readonly nginx: string;
  /** Folder below which the files of its packages are. */
  readonly root: string;
}

/** Finds nginx with Lua and a Redis client for it: installed, or unpacked into the cache. `undefined` if there is no way to get it. */
export async function findNginx(): Promise<NginxPrograms | undefined> {
  const installed = (await findBinary(["nginx"])) ?? (await findBinary(["nginx"], "/usr/sbin"));
  if (installed !== undefined && LUA_FILES.every((file) => existsSync(join("/", file))))
    return { nginx: installed, root: "/" };
  const nginx = await unpackedProgram({ packages: PACKAGES }, ["nginx"]);
  return nginx === undefined ? undefined : { nginx, root: unpackedRoot(nginx) };
}

/** Reason for an omitted section. */
export const MISSING = `nginx with Lua is missing: install ${PACKAGES.join(", ")}`;

export interface Nginx {
  /** The app behind all that are compared. */
  app(): Promise<Running>;
  bare(app: Running): Promise<Running>;
  /** Knows these keys. */
  map(app: Running, keys: readonly { readonly keyId: string; readonly key: string }[]): Promise<Running>;
  /** Knows the keys that `storeKeys` put into that Redis. */
  lua(app: Running, redisUrl: string): Promise<Running>;
}

export function peersOf({ nginx, root }: NginxPrograms): Nginx {
  const run = (name: string, values: Values, modules: readonly string[] = []) =>
    start(nginx, { name, values, modules: modules.map((module) => join(root, MODULES, module)) });
  const addressOf = ({ url }: Running): string => new URL(url).host;
  return {
    app: () => run("app", {}),
    bare: (app) => run("bare", { app: addressOf(app) }),
    map: (app, keys) => {
      const lines = keys.map(({ keyId, key }) => `"Bearer ${key}" ${keyId};`);
      return run("map", { app: addressOf(app), keys: lines.join("\n") });
    },
    lua: (app, redisUrl) => {
      const { hostname, port } = new URL(redisUrl);
      const values = {
        app: addressOf(app),
        lua: import.meta.dirname,
        lib: join(root, "usr/share/lua/5.1"),
        redisHost: hostname,
        redisPort: port,
      };
      return run("lua", values, ["ndk_http_module.so", "ngx_http_lua_module.so"]);
    },
  };
}

type Values = Readonly<Record<string, string>>;

async function start(
  nginx: string,
  { name, values, modules }: { name: string; values: Values; modules: readonly string[] },
): Promise<Running> {
  const folder = await mkdtemp(join(tmpdir(), `postern-nginx-${name}-`));
  const port = await freePort();
  const read = (file: string) => readFile(join(import.meta.dirname, `${file}.conf`), "utf8");
  const [whole, upstream, own] = await Promise.all(["nginx", "upstream", name].map(read));
  const http = values.app === undefined ? own : `${upstream}\n${own}`;
  const filled = fill(whole ?? "", {
    folder,
    modules: modules.map((file) => `load_module ${file};`).join("\n"),
    http: fill(http ?? "", { ...values, port: String(port) }),
  });
  const file = join(folder, "nginx.conf");
  await writeFile(file, filled);
  const child = await startProcess(nginx, ["-p", folder, "-c", file], { readyLine: WORKER_STARTED });
  return {
    url: `http://127.0.0.1:${port}`,
    pid: Number(WORKER_STARTED.exec(child.stderr())?.[1]),
    stop: async () => {
      await child.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const WORKER_STARTED = /start worker process (\d+)/;

function fill(text: string, values: Values): string {
  return text.replaceAll(/\{\{(\w+)\}\}/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`the configuration wants ${name}`);
    return value;
  });
}
