import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { DAY_MS, utcDate } from "../../core/utc-date.ts";
import { PROGRAM, type RunningProcess, startProcess } from "../harness/process.ts";
import { waitFor } from "../harness/wait.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const run = promisify(execFile);

interface Ready {
  apiUrl: string;
  sidecarUrl: string;
  adminUrl: string;
  rootKey: string;
  dashboardUrl: string;
  pid: number;
}

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "postern-dev-test-"));
  cpSync(join(ROOT, "examples/quickstart"), join(folder, "manifests"), {
    recursive: true,
    filter: (path) => !path.endsWith(".ts"),
  });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A failing test must not leave its server running on shared files. */
const started: RunningProcess[] = [];
afterEach(async () => {
  for (const child of started.splice(0)) await child.stop(6000);
});

/** Unsets the variables that would make `dev` use other databases. */
const env = { DATABASE_URL: undefined, REDIS_URL: undefined, POSTERN_ROOT_KEY: undefined };

async function startDev(more: { args?: string[]; env?: Record<string, string> } = {}) {
  const args = [PROGRAM, "dev", "--json", "--data-dir", join(folder, "data"), "--manifests", join(folder, "manifests")];
  const ports = ["--api-port", "0", "--sidecar-port", "0"];
  const child = await startProcess(process.execPath, [...args, ...ports, ...(more.args ?? [])], {
    cwd: ROOT,
    readyLine: /^\{.*"apiUrl".*\}$/m,
    env: { ...env, ...more.env },
  });
  started.push(child);
  return { child, ready: JSON.parse(child.stdout()) as Ready };
}

async function callApi(ready: Ready, procedure: string, body: unknown, rootKey = ready.rootKey) {
  const response = await fetch(`${ready.apiUrl}/v2/${procedure}`, {
    method: "POST",
    headers: { authorization: `Bearer ${rootKey}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as { data: Record<string, string> } };
}

/** Creating the files of a new Postgres takes a second, or much longer on a busy machine. */
const FILES_MADE = { deadlineMs: 45_000 };

async function childrenOf(pid: number): Promise<string[]> {
  const { stdout } = await run("ps", ["-o", "pid=", "--ppid", String(pid)]).catch(() => ({ stdout: "" }));
  return stdout
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}

async function stopped(child: RunningProcess) {
  const children = await childrenOf(child.pid);
  const startedAt = performance.now();
  const exit = await child.stop(6000);
  const tookMs = performance.now() - startedAt;
  const left = [];
  for (const pid of children) {
    if (
      await run("ps", ["-p", pid]).then(
        () => true,
        () => false,
      )
    )
      left.push(pid);
  }
  return { exit, tookMs, left };
}

describe("postern dev", { timeout: 60_000 }, () => {
  test("postern dev prints a ready line, serves and stops within 5 s without child processes", async () => {
    const { child, ready } = await startDev();
    expect(Object.keys(ready)).toEqual(["apiUrl", "sidecarUrl", "adminUrl", "rootKey", "dashboardUrl", "pid"]);
    expect(ready.pid).toBe(child.pid);
    expect((await fetch(`${ready.sidecarUrl}/orders`, { method: "POST" })).status).toBe(401);
    expect((await fetch(`${ready.adminUrl}/readyz`)).status).toBe(200);
    const { exit, tookMs, left } = await stopped(child);
    expect(exit).toEqual({ code: 0, signal: null });
    expect(tookMs).toBeLessThan(5000);
    expect(left).toEqual([]);
    expect(child.stdout().trim().split("\n")).toHaveLength(1);
  });

  test("postern dev prints a one-time dashboard sign-in link, and `dashboard link` creates another", async () => {
    const { child, ready } = await startDev();
    const signIn = async (address: string) => {
      const { origin, pathname, hash } = new URL(address);
      expect([origin, pathname]).toEqual([ready.apiUrl, "/dashboard/sign-in"]);
      const token = hash.slice("#token=".length);
      const headers = { "Postern-Dashboard": "1", Origin: origin, "Content-Type": "application/json" };
      const body = JSON.stringify({ token });
      const reply = await fetch(`${origin}/dashboard/auth/link`, { method: "POST", headers, body });
      return { status: reply.status, token };
    };
    const { token, status } = await signIn(ready.dashboardUrl);
    expect([status, (await signIn(ready.dashboardUrl)).status]).toEqual([200, 401]);
    const args = [PROGRAM, "dashboard", "link", "--json", "--data-dir", join(folder, "data")];
    const { stdout } = await run(process.execPath, args, { cwd: ROOT, env: { ...process.env, DATABASE_URL: "" } });
    expect((await signIn(JSON.parse(stdout).dashboardUrl)).status).toBe(200);
    expect(child.stderr()).not.toContain(token);
    await stopped(child);
  });

  test("postern dev stopped during Postgres startup leaves no process behind", async () => {
    const data = join(folder, "stopped-early");
    const args = [PROGRAM, "dev", "--json", "--data-dir", data, "--api-port", "0"];
    const child = await startProcess(process.execPath, args, { cwd: ROOT, env });
    started.push(child);
    const postgres = await waitFor(
      "its Postgres",
      async () => {
        const { stdout } = await run("ps", ["-o", "pid=,comm=", "--ppid", String(child.pid)]);
        return /(\d+) postgres/.exec(stdout)?.[1];
      },
      FILES_MADE,
    );
    expect(await child.stop(5000)).toEqual({ code: 0, signal: null });
    expect(child.stdout()).toBe("");
    await waitFor("its Postgres to be gone", () =>
      run("ps", ["-p", postgres]).then(
        () => false,
        () => true,
      ),
    );
  });

  test("postern dev creates a root key at each start and revokes the previous one", async () => {
    const first = await startDev();
    await stopped(first.child);
    const second = await startDev();
    try {
      expect(second.ready.rootKey).not.toBe(first.ready.rootKey);
      expect((await callApi(second.ready, "apis.createApi", { name: "mine" })).status).toBe(200);
      expect((await callApi(second.ready, "apis.createApi", { name: "late" }, first.ready.rootKey)).status).toBe(401);
    } finally {
      await stopped(second.child);
    }
  });

  test("postern dev uses POSTERN_ROOT_KEY as its root key", async () => {
    const rootKey = "my-own-root-key-of-32-characters";
    const { child, ready } = await startDev({ env: { POSTERN_ROOT_KEY: rootKey } });
    try {
      expect(ready.rootKey).toBe(rootKey);
      expect((await callApi(ready, "apis.createApi", { name: "mine" })).status).toBe(200);
    } finally {
      await stopped(child);
    }
  });

  test("postern dev accepts `rootkey create` and `rootkey list` while running", async () => {
    const { child, ready } = await startDev();
    const postern = async (...args: string[]) => {
      const { stdout } = await run(process.execPath, [PROGRAM, ...args, "--json", "--data-dir", join(folder, "data")], {
        cwd: ROOT,
        env: { ...process.env, DATABASE_URL: "", POSTERN_API_URL: undefined, POSTERN_ROOT_KEY: undefined },
      });
      return JSON.parse(stdout);
    };
    try {
      const { rootKey, rootKeyId } = await postern("rootkey", "create", "--permissions", "api.*.create_api");
      expect((await postern("rootkey", "list")).rootKeys).toContainEqual(
        expect.objectContaining({ rootKeyId, permissions: ["api.*.create_api"] }),
      );
      const made = await callApi(ready, "apis.createApi", { name: "mine" }, rootKey);
      expect(made.status).toBe(200);
      const refused = await callApi(ready, "apis.getApi", { apiId: made.body.data.apiId }, rootKey);
      expect(refused.status).toBe(403);
    } finally {
      await stopped(child);
    }
  });

  test("postern dev performs `refill run` in its own process", async () => {
    const { child, ready } = await startDev();
    try {
      const { apiId } = (await callApi(ready, "apis.createApi", { name: "mine" })).body.data;
      const credits = { remaining: 3, refill: { interval: "daily", amount: 10 } };
      const { key } = (await callApi(ready, "keys.createKey", { apiId, credits })).body.data;
      const verify = async () => (await callApi(ready, "keys.verifyKey", { key })).body.data.credits;
      expect(await verify()).toBe(2);
      const tomorrow = utcDate(Date.now() + DAY_MS);
      const { stdout } = await run(
        process.execPath,
        [PROGRAM, "refill", "run", "--json", "--at", tomorrow, "--data-dir", join(folder, "data")],
        { cwd: ROOT, env: { ...process.env, DATABASE_URL: "", REDIS_URL: "" } },
      );
      expect(JSON.parse(stdout)).toEqual({ date: tomorrow, refilled: 1, failed: 0 });
      expect(await verify()).toBe(11);
    } finally {
      await stopped(child);
    }
  });

  test("postern dev can be started again after a kill, even if its Postgres is still running", async () => {
    const first = await startDev();
    const { body } = await callApi(first.ready, "apis.createApi", { name: "before" });
    first.child.kill("SIGKILL");
    await first.child.exited;
    const second = await startDev();
    try {
      const found = await callApi(second.ready, "apis.getApi", { apiId: body.data.apiId });
      expect(found.body.data.name).toBe("before");
    } finally {
      expect((await stopped(second.child)).left).toEqual([]);
    }
  });

  test("postern dev reports wrong usage with exit code 2", async () => {
    const wrong = run(process.execPath, [PROGRAM, "dev", "--api-port", "eighty"], { cwd: ROOT });
    await expect(wrong).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringContaining("for --api-port: must be a port"),
    });
  });
});
