import { access, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { installedBinary, installPackage } from "../../harness/parts/apt.ts";
import { findBinary } from "../../harness/parts/find.ts";
import { freePort } from "../../harness/ports.ts";
import { startProcess } from "../../harness/process.ts";
import type { Running } from "../stack.ts";

/*
 * What a user would take in place of a gate: nginx of Debian's packages, with the configurations beside this file. Each has one
 * worker process, whose CPU time is what is measured.
 */

/** Where Debian puts nginx's dynamic modules. */
const MODULES = "/usr/lib/nginx/modules";
const LUA_REDIS = "/usr/share/lua/5.1/nginx/redis.lua";
/** With POSTERN_BENCH_INSTALL=1, as root, what is missing is installed from Debian's packages. */
const mayInstall = process.env.POSTERN_BENCH_INSTALL === "1";

export interface NginxPrograms {
  readonly nginx: string;
  /** Whether it has Lua, and Lua has a client for Redis. */
  readonly hasLua: boolean;
}

/** undefined when nginx is not installed and may not be. */
export async function findNginx(): Promise<NginxPrograms | undefined> {
  const names = ["nginx"];
  const found = (await findBinary(names)) ?? (await findBinary(names, "/usr/sbin"));
  const nginx = found ?? (mayInstall ? await installedBinary("nginx-light", names) : undefined);
  if (nginx === undefined) return undefined;
  if (mayInstall && !(await hasLua())) {
    for (const each of ["libnginx-mod-http-lua", "lua-nginx-redis"]) await installPackage(each);
  }
  return { nginx, hasLua: await hasLua() };
}

async function hasLua(): Promise<boolean> {
  const files = [join(MODULES, "ndk_http_module.so"), join(MODULES, "ngx_http_lua_module.so"), LUA_REDIS];
  const found = await Promise.all(files.map((file) => access(file).then(...YES_OR_NO)));
  return found.every(Boolean);
}

const YES_OR_NO = [() => true, () => false] as const;

/** One line for a section that is left out. */
export const MISSING = "nginx is not installed (POSTERN_BENCH_INSTALL=1 lets root install it from Debian's packages)";

export interface Nginx {
  /** The app behind all that are compared. */
  app(): Promise<Running>;
  bare(app: Running): Promise<Running>;
  /** Knows these keys. */
  map(app: Running, keys: readonly { readonly keyId: string; readonly key: string }[]): Promise<Running>;
  /** Knows the keys that `storeKeys` put into that Redis. */
  lua(app: Running, redisUrl: string): Promise<Running>;
}

export function peersOf({ nginx }: NginxPrograms): Nginx {
  const run = (name: string, values: Values, modules: readonly string[] = []) =>
    start(nginx, { name, values, modules });
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
      const values = { app: addressOf(app), lua: import.meta.dirname, redisHost: hostname, redisPort: port };
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
    modules: modules.map((module) => `load_module ${join(MODULES, module)};`).join("\n"),
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
