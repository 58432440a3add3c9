import { execFile, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { PROGRAM } from "../test/harness/process.ts";
import { waitFor } from "../test/harness/wait.ts";
import { type ApiCli, openApiCli } from "./test/api-cli.ts";

/* Tests that need a separate process: pipes, a terminal, and what other users can see. */

const ROOT = resolve(import.meta.dirname, "..");
const POSTERN = `'${process.execPath}' '${PROGRAM}'`;
const run = promisify(execFile);

let cli: ApiCli;
let apiId: string;
beforeAll(async () => {
  cli = await openApiCli();
  apiId = await cli.resources.api();
});
afterAll(() => cli.close());

const environment = (): Record<string, string | undefined> => ({
  PATH: process.env.PATH,
  ...cli.as(cli.t.workspace.rootKey).env,
});
const shell = (line: string) => run("bash", ["--norc", "-c", line], { cwd: ROOT, env: environment() });

test("key create output passes unchanged through a pipe into the next command", async () => {
  const made = await shell(`${POSTERN} key create --api ${apiId} | od -An -c | tr -d ' \\n'`);
  expect(made.stdout).toMatch(/^[1-9A-Za-z]+$/);
  expect(made.stderr).toContain("it is shown only once");
  const verified = await shell(`${POSTERN} key create --api ${apiId} | ${POSTERN} key verify --json`);
  expect(JSON.parse(verified.stdout)).toMatchObject({ code: "VALID" });
}, 60_000);

test("list ends without an error when its reader closes the pipe", async () => {
  for (let i = 0; i < 3; i++) await cli.resources.key({ apiId });
  const line = `${POSTERN} key list --api ${apiId} --limit 3 | true; echo "\${PIPESTATUS[0]}"`;
  const { stdout, stderr } = await shell(line);
  expect(["141\n", "0\n"]).toContain(stdout);
  expect(stderr.split("\n").filter((one) => !/^only .* shown/.test(one))).toEqual([""]);
}, 60_000);

test("typed root key is neither shown nor in a command line", async () => {
  const { rootKey } = cli.t.workspace;
  const { PATH, XDG_CONFIG_HOME } = environment();
  const command = `${POSTERN} profile add --name typed --api-url ${cli.url}`;
  const child = spawn("script", ["-qec", command, "/dev/null"], {
    cwd: ROOT,
    env: { PATH, XDG_CONFIG_HOME, HOME: "/nowhere" },
  });
  let shown = "";
  child.stdout.on("data", (chunk: Buffer) => {
    shown += chunk.toString();
  });
  const exited = new Promise((done) => child.once("exit", done));
  await waitFor("the question", () => shown.includes("root key (hidden): "), { deadlineMs: 30_000 });
  const { stdout: processes } = await run("ps", ["-eo", "args"], { maxBuffer: 16 * 1024 * 1024 });
  expect(processes).toContain("profile add --name typed");
  expect(processes).not.toContain(rootKey);
  // Types one wrong character and a backspace.
  child.stdin.write(`x\u007f${rootKey}\r`);
  expect(await exited).toBe(0);
  expect(shown).toContain("profile typed is stored");
  expect(shown).not.toContain(rootKey);
  expect(readFileSync(join(XDG_CONFIG_HOME ?? "", "postern/profiles.json"), "utf8")).toContain(rootKey);
}, 60_000);
