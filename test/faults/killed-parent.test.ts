import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import type { Data, Input, Procedure } from "../../core/api/procedures.ts";
import { PROGRAM, type RunningProcess, startProcess } from "../harness/process.ts";
import { waitFor } from "../harness/wait.ts";

/* A killed process cannot stop its children. They must still end and must not affect the next start. */

const ROOT = resolve(import.meta.dirname, "../..");

/** Returns false also for a zombie process. */
function isAlive(pid: number): boolean {
  try {
    const state = execFileSync("ps", ["-p", String(pid), "-o", "stat="], { encoding: "utf8" }).trim();
    return state !== "" && !state.startsWith("Z");
  } catch {
    return false;
  }
}

const pidIn = (cluster: string): number =>
  Number(readFileSync(join(cluster, "postmaster.pid"), "utf8").split("\n", 1)[0]);

async function startDev(data: string): Promise<RunningProcess & { url: string; rootKey: string }> {
  const args = [PROGRAM, "dev", "--json", "--data-dir", data, "--api-port", "0"];
  const env = { DATABASE_URL: undefined, REDIS_URL: undefined };
  const dev = await startProcess(process.execPath, args, {
    cwd: ROOT,
    readyLine: /"apiUrl".*\n/,
    readyMs: 90_000,
    env,
  });
  const { apiUrl, rootKey } = JSON.parse(dev.stdout());
  return { ...dev, url: apiUrl, rootKey };
}

async function create<P extends Procedure>(dev: { url: string; rootKey: string }, path: P, body: Input<P>) {
  const response = await fetch(`${dev.url}/v2/${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${dev.rootKey}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return ((await response.json()) as { data: Data<P> }).data;
}

function aFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "postern-killed-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  // As root, Postgres runs as another user, which must have access to the folder.
  chmodSync(folder, 0o755);
  return folder;
}

/** Returns the Postgres data folder of a `postern dev`. */
async function clusterOf(data: string): Promise<string> {
  const path = join(data, "postgres", "cluster");
  await waitFor("the cluster", () => existsSync(path));
  return path;
}

test("kill -9 of postern dev stops its Postgres and keeps acknowledged data", async () => {
  const data = aFolder();
  const first = await startDev(data);
  onTestFinished(async () => void (await first.stop()));
  const { apiId } = await create(first, "apis.createApi", { name: "kept" });
  const postgres = pidIn(await clusterOf(data));
  expect(isAlive(postgres)).toBe(true);
  first.kill("SIGKILL");
  await first.exited;
  await waitFor("Postgres to end", () => !isAlive(postgres), { deadlineMs: 20_000 });
  const second = await startDev(data);
  onTestFinished(async () => void (await second.stop()));
  expect(await create(second, "apis.getApi", { apiId })).toMatchObject({ id: apiId });
});

test("postern dev started right after kill -9 is unaffected by old processes", async () => {
  const data = aFolder();
  const first = await startDev(data);
  onTestFinished(async () => void (await first.stop()));
  const { apiId } = await create(first, "apis.createApi", { name: "kept" });
  const left = pidIn(await clusterOf(data));
  first.kill("SIGKILL");
  const second = await startDev(data);
  onTestFinished(async () => void (await second.stop()));
  expect(await create(second, "apis.getApi", { apiId })).toMatchObject({ id: apiId });
  expect(isAlive(left)).toBe(false);
});

test.each(["SIGTERM", "SIGKILL"] as const)(
  "process that uses the harness and gets %s leaves no Postgres and no files behind",
  async (signal) => {
    const text = `
    import { partAddress } from ${JSON.stringify(join(ROOT, "test/harness/broker.ts"))};
    console.log("POSTGRES " + (await partAddress("postgres")).url);
    setInterval(() => undefined, 1000);`;
    const env = { TEST_POSTERN_BROKER: undefined, TEST_DATABASE_URL: undefined };
    const args = ["--input-type=module-typescript", "-e", text];
    const runner = await startProcess(process.execPath, args, {
      cwd: ROOT,
      readyLine: /POSTGRES .*\n/,
      readyMs: 60_000,
      env,
    });
    onTestFinished(async () => void (await runner.stop()));
    const client = new pg.Client({ connectionString: /POSTGRES (\S+)/.exec(runner.stdout())?.[1] });
    client.on("error", () => undefined);
    await client.connect();
    const { rows } = await client.query<{ data: string }>("select current_setting('data_directory') as data");
    const cluster = rows[0]?.data ?? "";
    await client.end();
    const postgres = pidIn(cluster);
    runner.kill(signal);
    await runner.exited;
    await waitFor("Postgres to end", () => !isAlive(postgres), { deadlineMs: 20_000 });
    await waitFor("its files to be gone", () => !existsSync(dirname(cluster)), { deadlineMs: 20_000 });
  },
);
