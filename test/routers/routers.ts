import { once } from "node:events";
import { Agent, type IncomingHttpHeaders, type IncomingMessage, request } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { startGateway } from "../gateways/programs.ts";
import { findDebianGateway } from "../harness/parts/gateways.ts";
import { findGoProgram } from "../harness/parts/go-program.ts";
import { npmWith } from "../harness/parts/npm-packages.ts";
import { pythonWith } from "../harness/parts/python-package.ts";
import { freePort } from "../harness/ports.ts";
import { startProcess } from "../harness/process.ts";

/* Apps with the routers that people use, each with the same guarded paths. */

export interface Router {
  readonly name: string;
  readonly port: number;
}

export interface Routers {
  readonly all: readonly Router[];
  close(): Promise<void>;
}

const APPS = join(import.meta.dirname, "apps");
const KOA = ["koa@3.3.0", "@koa/router@15.7.0"];
const FASTAPI = {
  name: "fastapi",
  version: "0.165.0",
  title: "FastAPI and other routers of Python",
  and: [
    ...["uvicorn==0.54.0", "flask==3.1.3", "django==5.2.19", "aiohttp==3.14.5", "bottle==0.13.4", "waitress==3.0.2"],
    ...["tornado==6.6.1"],
  ],
};
const GO = {
  name: "routers",
  source: "routers/apps/main.go",
  modules: ["github.com/go-chi/chi/v5@v5.5.0", "github.com/gorilla/mux@v1.8.1", "github.com/gin-gonic/gin@v1.12.0"],
};

/** Starts all routers. Throws `MissingPart` with what to install. */
export async function startRouters(paths: readonly string[]): Promise<Routers> {
  const json = JSON.stringify(paths);
  const commands: Array<readonly [count: number, program: string, ...args: string[]]> = [
    [4, process.execPath, join(APPS, "node.mjs"), await npmWith("Koa", KOA), json],
    [6, await pythonWith(FASTAPI), join(APPS, "python.py"), json],
    [4, await findGoProgram(GO), json],
  ];
  const programs = await Promise.all(
    commands.map(async ([count, program, ...args]) => {
      const child = await startProcess(program, args, { readyLine: new RegExp(`(?:^\\S+ \\d+\\n){${count}}`, "m") });
      const routers = [...child.stdout().matchAll(/^(\S+) (\d+)$/gm)].map(([, name = "", port]) => ({
        name,
        port: Number(port),
      }));
      return { routers, close: () => child.stop() };
    }),
  );
  const nginx = await startNginx(paths);
  return {
    all: [...programs.flatMap(({ routers }) => routers), { name: "nginx", port: nginx.port }],
    close: async () => {
      agent.destroy();
      await Promise.all([...programs, nginx].map(({ close }) => close()));
    },
  };
}

async function startNginx(paths: readonly string[]) {
  const { program: nginx } = await findDebianGateway("nginx");
  const port = await freePort();
  const locations = paths.map(
    (path) => `location ~ "^${RegExp.escape(path).replaceAll('"', '\\"')}$" { return 200 guarded; }`,
  );
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  return startGateway({
    name: "nginx",
    port,
    files: (dir) => ({
      "nginx.conf": `error_log stderr crit; pid ${dir}/pid; daemon off; worker_processes 1;
events {}
http {
  access_log off;
  ${temporary.map((name) => `${name}_temp_path ${dir}/${name};`).join("\n  ")}
  server { listen 127.0.0.1:${port}; location / { return 200 other; } ${locations.join("\n")} }
}`,
    }),
    command: (dir) => [nginx, "-c", join(dir, "nginx.conf"), "-p", dir],
  });
}

// A connection for each request would take twice the time.
const agent = new Agent({ keepAlive: true });

/** Sends a GET for the bytes of a target. Throws if no response arrives within ten seconds. */
export async function get(
  port: number,
  target: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ status: number; headers: IncomingHttpHeaders; body: string }> {
  const sent = request({
    ...{ host: "127.0.0.1", port, path: target, headers: { ...headers, host: "a" } },
    ...{ agent, signal: AbortSignal.timeout(10_000) },
  });
  try {
    sent.end();
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    return { status: response.statusCode ?? 0, headers: response.headers, body: await text(response) };
  } catch (cause) {
    // The server may have closed an idle connection just before the request.
    if (sent.reusedSocket && (cause as NodeJS.ErrnoException).code === "ECONNRESET") return get(port, target, headers);
    throw new Error(`no response to ${JSON.stringify(target)} from port ${port}`, { cause });
  }
}
