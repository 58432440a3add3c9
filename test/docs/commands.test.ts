import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RunningProcess, startProcess } from "../harness/process.ts";
import { waitFor } from "../harness/wait.ts";

/* Runs the commands of the README and of CONTRIBUTING as written, except those that would take a fixed port. */

const ROOT = resolve(import.meta.dirname, "../..");
const run = promisify(execFile);
const README = readFileSync(join(ROOT, "README.md"), "utf8");
const CONTRIBUTING = readFileSync(join(ROOT, "CONTRIBUTING.md"), "utf8");

const blocks = (text: string, language: string): string[] =>
  [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, "gms"))].map(([, body = ""]) => body);
const shell = (line: string, more = "") => run("sh", ["-c", `${line} ${more}`], { cwd: ROOT, env: ENV });

/** Without the variables that would make `postern dev` use other stores. */
const ENV = { ...process.env, DATABASE_URL: "", REDIS_URL: "" };
const line = (start: string): string => {
  const found = blocks(README, "sh")
    .join("")
    .split("\n")
    .find((one) => one.startsWith(start));
  if (found === undefined) throw new Error(`the README has no line "${start}…"`);
  return found;
};

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "postern-commands-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("each `make` target in the documents exists with a help text", async () => {
  const { stdout } = await run("make", ["--no-print-directory", "help"], { cwd: ROOT });
  const named = new Set([...`${README}${CONTRIBUTING}`.matchAll(/\bmake ([a-z]+)[`\n]/g)].map(([, name = ""]) => name));
  expect([...named].sort()).toEqual(["bench", "demo", "dev", "setup", "test"]);
  for (const name of named) expect(stdout).toMatch(new RegExp(`^make ${name} +\\S`, "m"));
});

test("each image built in install.md is pushed to the chart's registry", () => {
  const page = readFileSync(join(ROOT, "docs/install.md"), "utf8");
  const [line = ""] = page.match(/^for part in .*docker build.*$/m) ?? [];
  const [, built] = /docker build .*--tag (\S+)/.exec(line) ?? [];
  const [, pushed] = /docker push (\S+?);/.exec(line) ?? [];
  expect(built).toBeDefined();
  expect(pushed).toBe(built);
  const dockerfile = readFileSync(join(ROOT, "Dockerfile"), "utf8");
  for (const part of /^for part in (.*?);/.exec(line)?.[1]?.split(" ") ?? []) {
    expect(dockerfile).toMatch(new RegExp(`^FROM .* AS ${part}$`, "m"));
  }
  for (const [, registry] of page.matchAll(/image\.registry=(\S+)/g)) expect(built?.split("/")[0]).toBe(registry);
});

test("each file in a CONTRIBUTING command exists", () => {
  const paths = [
    ...blocks(CONTRIBUTING, "sh")
      .join("")
      .matchAll(/^vitest run (?!-)(\S+)/gm),
  ].map(([, path = ""]) => path);
  expect(paths.length).toBeGreaterThan(0);
  expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});

test("`make demo` gets the expected response at each step and exits with 0", async () => {
  const { stdout } = await shell("npm run -s demo");
  expect(stdout).toContain("all 7 steps gave what they should");
  expect(stdout.match(/^ {2}\d {2}.*/gm)?.map((step) => /\b(\d{3})\b {2}ok/.exec(step)?.[1])).toEqual([
    "401",
    "403",
    "200",
    "200",
    "429",
    "200",
    "401",
  ]);
});

describe("the README's command line", () => {
  test("command line from the README lists its commands and validates the quickstart manifests", async () => {
    expect((await shell(line("npm run -s postern -- --help"))).stdout).toContain("rootkey create");
    expect((await shell(line("npm run -s postern -- validate"))).stdout).toContain("0 problems");
  });

  test("README manifest is valid", async () => {
    const file = join(folder, "readme.yaml");
    writeFileSync(file, blocks(README, "yaml").join("---\n"));
    expect((await shell(`npm run -s postern -- validate -f ${file}`)).stdout).toContain("1 file, 0 problems");
  });

  test("dev server from the README answers `rootkey create` and `curl`, and stops when npm stops", async () => {
    const data = ["--data-dir", join(folder, "data")];
    const [npm = "", ...args] = line("npm run -s postern -- dev").split(" ");
    const dev: RunningProcess = await startProcess(
      npm,
      [...args, ...data, "--json", "--api-port", "0", "--sidecar-port", "0"],
      { cwd: ROOT, env: ENV, readyLine: /^\{.*"apiUrl".*\}$/m },
    );
    try {
      const ready = JSON.parse(dev.stdout()) as { apiUrl: string; sidecarUrl: string; rootKey: string; pid: number };
      const made = await shell(line("npm run -s postern -- rootkey create"), data.join(" "));
      expect(made.stdout).toContain("api.*.create_key");

      const call = (procedure: string, body: unknown) =>
        fetch(`${ready.apiUrl}/v2/${procedure}`, {
          method: "POST",
          headers: { authorization: `Bearer ${ready.rootKey}`, "content-type": "application/json" },
          body: JSON.stringify(body),
        }).then((response) => response.json() as Promise<{ data: Record<string, string> }>);
      const { apiId = "" } = (await call("apis.createApi", { name: "readme" })).data;
      const curl = blocks(README, "sh").find((block) => block.startsWith("curl")) ?? "";
      const mine = curl.replace("http://127.0.0.1:8080", ready.apiUrl).replace("api_…", apiId);
      const response = JSON.parse((await shell(`POSTERN_ROOT_KEY=${ready.rootKey}; ${mine}`)).stdout);
      expect(response.data?.key ?? response).toMatch(/^\w+$/);

      expect(await dev.stop(6000)).toMatchObject({ code: 0 });
      await waitFor("the process that dev named to be gone", () => !isRunning(ready.pid));
    } finally {
      await dev.stop();
    }
  });
});

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
