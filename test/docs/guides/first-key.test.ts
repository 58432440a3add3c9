import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RunningProcess, startProcess } from "../../harness/process.ts";
import { callFunction, readPage, runSteps, type Shell, writeAnswers } from "./page.ts";

/* docs/guides/api/README.md as written, from `make dev` to a key that is taken back; only ports and folder are the test's own. */

const ROOT = resolve(import.meta.dirname, "../../..");
const page = readPage("README.md");

let folder: string;
let dev: RunningProcess;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "postern-first-key-"));
  const [first] = page.steps;
  expect(first?.commands).toBe("make dev\n");
  const args = `--api-port 0 --sidecar-port 0 --app-port 0 --data ${join(folder, "data")}`;
  dev = await startProcess("make", ["--no-print-directory", "dev", `ARGS=${args}`], {
    cwd: ROOT,
    env: { DATABASE_URL: "", REDIS_URL: "", POSTERN_ROOT_KEY: undefined },
    readyLine: /keys\.verifyKey/,
    readyMs: 120_000,
  });
});
afterAll(async () => {
  await dev?.stop(10_000);
  rmSync(folder, { recursive: true, force: true });
});

test("each command does what the page says, on what make dev started", async () => {
  const [, apiUrl = ""] = /API +(http:\S+)\/v2/.exec(dev.stdout()) ?? [];
  const shell: Shell = {
    variables: { POSTERN_API_URL: apiUrl, POSTERN_DATA: join(folder, "data") },
    printed: dev.stdout(),
  };
  const ran = await runSteps(page.steps.slice(1), shell, callFunction());
  if (process.env.GUIDES !== undefined) writeAnswers(page, ran);
  else for (const { shown, printed, commands } of ran) expect(printed, commands).toBe(shown);
  expect(ran.length).toBeGreaterThan(5);
});
