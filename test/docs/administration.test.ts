import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { COMMANDS } from "../../cli/commands.ts";
import { makeClient } from "../faults/client.ts";
import { openSystem } from "../faults/system.ts";
import { PROGRAM } from "../harness/process.ts";

/* Runs the commands of docs/administration.md as written, one after another, on one database. */

const ROOT = resolve(import.meta.dirname, "../..");
const run = promisify(execFile);
const lines = [...readFileSync(join(ROOT, "docs/administration.md"), "utf8").matchAll(/^postern .*$/gm)].map(
  ([line]) => line,
);

const dir = mkdtempSync(join(tmpdir(), "postern-administration-"));
afterAll(() => rmSync(dir, { recursive: true }));

test("every command of docs/administration.md works", async () => {
  const system = await openSystem();
  const server = await system.api();
  const env: Record<string, string | undefined> = {
    ...process.env,
    DATABASE_URL: system.databaseUrl,
    REDIS_URL: system.redisUrl,
    POSTERN_REDIS_PREFIX: system.prefix,
    NAMESPACE: "logins",
    POSTERN_ENCRYPTION_KEYS: `k1:${randomBytes(32).toString("base64")}`,
    USER: "ada",
    XDG_CONFIG_HOME: dir,
    API_URL: server.url,
  };
  /** What it printed; what it said to the person, when there was nothing to print. */
  const shell = async (line: string): Promise<string> => {
    const command = line.replace(/^postern/, `'${process.execPath}' '${PROGRAM}'`);
    const { stdout, stderr } = await run("sh", ["-c", command], { cwd: dir, env });
    return stdout === "" ? stderr : stdout;
  };

  expect(lines.length).toBeGreaterThan(20);
  for (const line of lines) {
    if (line === "postern rootkey list") {
      // Values that a reader has by then: the id that `create` printed, and an API and a namespace that the root key made.
      const grants = "api.*.create_api,ratelimit.*.limit,ratelimit.*.create_namespace";
      const made = JSON.parse(await shell(`postern rootkey create --workspace acme --permissions ${grants} --json`));
      const acme = makeClient(server.url, made.rootKey);
      env.ROOT_KEY_ID = made.rootKeyId;
      env.API_ID = (await acme.data("apis.createApi", { name: "acme" })).apiId;
      await acme.data("ratelimit.limit", { namespace: "logins", identifier: "a", limit: 1, duration: 60_000 });
    }
    const printed = await shell(line);
    if (!line.includes(" > ")) expect(printed, line).not.toBe("");
  }
});

test("docs/administration.md shows every command without an API equivalent", () => {
  const ofInstallation = COMMANDS.filter(({ group }) => group === "database")
    .map(({ name }) => name)
    .filter((name) => / |^audit$/.test(name));
  expect(
    ofInstallation.filter(
      (name) => !lines.some((line) => line.startsWith(`postern ${name} `) || line === `postern ${name}`),
    ),
  ).toEqual([]);
});
