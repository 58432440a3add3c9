import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { openSystem } from "../faults/system.ts";
import { startApp } from "../harness/gate.ts";
import { PROGRAM, type RunningProcess, startProcess } from "../harness/process.ts";
import { waitFor } from "../harness/wait.ts";

/* Runs the commands of docs/operations with ports and addresses of the test. */

const ROOT = resolve(import.meta.dirname, "../..");
const POSTERN = `'${process.execPath}' '${PROGRAM}'`;
const run = promisify(execFile);

/** Returns the shell lines of a page. */
const linesOf = (page: string): string[] =>
  [...readFileSync(join(ROOT, "docs/operations", page), "utf8").matchAll(/^( *)```sh\n([\s\S]*?)^\1```/gm)]
    .flatMap(([, , body = ""]) => body.split("\n"))
    .map((line) => line.trim())
    .filter((line) => line !== "");
const asProgram = (line: string): string => line.replace(/(^|\$\()postern /g, `$1${POSTERN} `);

test("documented commands start each component, and the gate requires a key", async () => {
  const system = await openSystem();
  const app = await startApp();
  onTestFinished(() => app.close());
  const lines = linesOf("start-by-hand.md");
  const exported = lines.filter((line) => line.startsWith("export ")).map((line) => /^export (\w+)=/.exec(line)?.[1]);
  expect(exported).toEqual(["DATABASE_URL", "REDIS_URL", "POSTERN_API_URL", "POSTERN_ROOT_KEY", "POSTERN_WORKSPACE"]);
  const starts = lines.filter((line) => line.startsWith("postern "));
  expect(starts.map((line) => line.split(" ")[1])).toEqual(["api-server", "ingest", "operator", "sidecar"]);

  const own: Record<string, string> = {
    ...{ DATABASE_URL: system.databaseUrl, REDIS_URL: system.redisUrl, POSTERN_REDIS_PREFIX: system.prefix },
    ...{ POSTERN_HOST: "127.0.0.1", POSTERN_API_PORT: "0", POSTERN_ADMIN_PORT: "0", POSTERN_SIDECAR_PORT: "0" },
    ...{ POSTERN_STATE_DIR: `/tmp/postern-state-${randomBytes(4).toString("hex")}`, POSTERN_DRAIN_TIMEOUT: "0" },
    POSTERN_ROOT_KEY: randomBytes(24).toString("hex"),
  };
  const start = async (
    part: string,
    more: Record<string, string> = {},
  ): Promise<{ child: RunningProcess; said: Record<string, string> }> => {
    const line = starts.find((one) => one.startsWith(`postern ${part}`)) ?? "";
    const command = asProgram(line).replace("http://127.0.0.1:3000", app.url);
    const child = await startProcess("sh", ["-c", `exec ${command}`], {
      cwd: ROOT,
      env: { ...own, ...more },
      readyLine: /"msg":"(?:ready|watching|listening)".*\n/,
    });
    onTestFinished(async () => void (await child.stop()));
    const said = child
      .stderr()
      .split("\n")
      .find((one) => /"msg":"(?:ready|watching|listening)"/.test(one));
    return { child, said: JSON.parse(said ?? "{}") };
  };
  const untilReady = (url: string | undefined) =>
    waitFor(`${url} to be ready`, async () => (await fetch(`${url}/readyz`)).ok);

  // The api-server serves probes on the API port by default.
  const { POSTERN_ADMIN_PORT: _, ...ofApi } = own;
  Object.assign(own, ofApi);
  const api = await start("api-server", { POSTERN_ADMIN_PORT: "" });
  await untilReady(api.said.url);
  own.POSTERN_API_URL = api.said.url ?? "";
  await untilReady((await start("ingest")).said.adminUrl);
  await untilReady((await start("operator")).said.adminUrl);

  const workspace = lines.find((line) => line.startsWith("export POSTERN_WORKSPACE=")) ?? "";
  const { stdout } = await run("sh", ["-c", `${asProgram(workspace)}; echo "$POSTERN_WORKSPACE"`], {
    cwd: ROOT,
    env: { ...process.env, ...own },
  });
  expect(stdout.trim()).toBe(await system.workspaceId());
  const gate = await start("sidecar", { POSTERN_WORKSPACE: stdout.trim() });
  await untilReady(gate.said.adminUrl);
  const response = await fetch(`${gate.said.url}/`);
  expect(response.status).toBe(401);
  expect(app.seen).toEqual([]);
}, 120_000);

test.each([
  { part: "api-server", without: "DATABASE_URL", says: /DATABASE_URL/ },
  { part: "api-server", without: "REDIS_URL", says: /REDIS_URL/ },
  { part: "ingest", without: "DATABASE_URL", says: /DATABASE_URL/ },
  { part: "ingest", without: "REDIS_URL", says: /REDIS_URL/ },
  { part: "operator", without: "POSTERN_API_URL", says: /POSTERN_API_URL/ },
  { part: "operator", without: "POSTERN_ROOT_KEY", says: /POSTERN_ROOT_KEY/ },
  { part: "sidecar", without: "REDIS_URL", says: /REDIS_URL/ },
  { part: "sidecar", without: "POSTERN_WORKSPACE", says: /POSTERN_WORKSPACE/ },
])("$part started without $without exits with 2 and names the missing setting", async ({ part, without, says }) => {
  const line = linesOf("start-by-hand.md").find((one) => one.startsWith(`postern ${part}`)) ?? "";
  const env: Record<string, string | undefined> = {
    ...{ DATABASE_URL: "postgres://127.0.0.1:9/none", REDIS_URL: "redis://127.0.0.1:9", POSTERN_ADMIN_PORT: "0" },
    ...{ POSTERN_API_URL: "http://127.0.0.1:9", POSTERN_ROOT_KEY: "x".repeat(40), POSTERN_WORKSPACE: "ws_none" },
    ...{ POSTERN_API_PORT: "0", POSTERN_SIDECAR_PORT: "0", [without]: undefined },
  };
  const child = await startProcess("sh", ["-c", `exec ${asProgram(line)}`], { cwd: ROOT, env });
  expect(await child.exited).toEqual({ code: 2, signal: null });
  expect(child.stderr()).toMatch(says);
});

test("commands of rotation.md and events.md work", async () => {
  const system = await openSystem();
  const server = await system.api();
  const { apiId } = await server.data("apis.createApi", { name: "payments" });
  const { key } = await server.data("keys.createKey", { apiId });
  const env: Record<string, string | undefined> = {
    ...process.env,
    ...{ DATABASE_URL: system.databaseUrl, REDIS_URL: system.redisUrl, WORKSPACE_ID: await system.workspaceId() },
    ...{ POSTERN_API_URL: server.server.url, POSTERN_ROOT_KEY: system.rootKey },
    POSTERN_ENCRYPTION_KEYS: `k2:${randomBytes(32).toString("base64")}`,
  };
  const shell = async (line: string) => {
    const { stdout, stderr } = await run("sh", ["-c", asProgram(line)], { cwd: ROOT, env });
    return stdout === "" ? stderr : stdout;
  };
  const made = JSON.parse(await shell("postern rootkey create --permissions api.*.verify_key --json"));
  env.ROOT_KEY_ID = made.rootKeyId;
  const rotation = linesOf("rotation.md").filter((line) => line.startsWith("postern "));
  expect(rotation).toHaveLength(5);
  for (const line of rotation) expect(await shell(line), line).not.toBe("");
  const ended = await fetch(`${server.server.url}/v2/keys.verifyKey`, {
    method: "POST",
    headers: { authorization: `Bearer ${made.rootKey}`, "content-type": "application/json" },
    body: JSON.stringify({ key }),
  });
  expect(ended.status).toBe(401);

  await server.data("keys.verifyKey", { key });
  const stream = `${system.prefix}:${env.WORKSPACE_ID}:events`;
  await waitFor("the stream to be there", async () => (await system.raw.exists(stream)) === 1);
  const asked = linesOf("events.md").filter((line) => line.startsWith("redis-cli "));
  expect(asked).toHaveLength(2);
  // Queries Redis as redis-cli does, which may be missing on the machine.
  const ask = async (line: string): Promise<string> => {
    const [command = "", ...args] = line
      .replace(/^redis-cli -u "\$REDIS_URL" /, "")
      .replace('"ps:$WORKSPACE_ID:events"', stream)
      .split(" ");
    return JSON.stringify(await system.raw.call(command, ...args));
  };
  const [length = "", groups = ""] = asked;
  expect(await ask(length)).toMatch(/^\d+$/);
  await waitFor("the group of the readers", async () => (await ask(groups)).includes("ingest"));
  expect(await ask(groups)).toMatch(/ingest.*pending.*lag/);
}, 120_000);
