import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { openRedisEdge } from "../../edge/open.ts";
import { aPolicy, call, POLICY, Records, WORKSPACE } from "../harness/gate.ts";
import { freePort } from "../harness/ports.ts";
import { createEmptyDatabase, createTestDatabase } from "../harness/postgres.ts";
import { PROGRAM, type RunningProcess, startProcess } from "../harness/process.ts";
import { createTestRedis, startOwnRedis } from "../harness/redis.ts";
import { waitFor as waitForAtMost } from "../harness/wait.ts";
import { openLine } from "./line.ts";

/* A component that starts while a database is unavailable waits for it, responds to probes and keeps running. */

/** Longer timeout, because processes start slowly on a busy machine. */
const waitFor: typeof waitForAtMost = (what, probe) => waitForAtMost(what, probe, { deadlineMs: 60_000 });

const ROOT = resolve(import.meta.dirname, "../..");

async function spawn(args: string[], env: Record<string, string> = {}): Promise<RunningProcess> {
  const child = await startProcess(process.execPath, [PROGRAM, ...args, "--host", "127.0.0.1"], {
    cwd: ROOT,
    env,
  });
  onTestFinished(async () => void (await child.stop()));
  return child;
}

async function ask(port: number, path: string): Promise<{ status: number; body: string }> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`);
  return { status: response.status, body: await response.text() };
}

const statusOf = async (port: number, path: string) => (await ask(port, path)).status;

/** Returns a Postgres behind a proxy that is cut. */
async function cutPostgres() {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const line = await openLine(database.url);
  onTestFinished(() => line.close());
  line.cut();
  const url = new URL(database.url);
  url.port = new URL(line.url).port;
  url.hostname = "127.0.0.1";
  return { url: url.href, line };
}

async function redis() {
  const shared = await createTestRedis();
  onTestFinished(() => shared.close());
  return { REDIS_URL: shared.url, POSTERN_REDIS_PREFIX: shared.prefix.replace(/:$/, "") };
}

test("api-server started without Postgres reports unready and serves after recovery", async () => {
  const { url, line } = await cutPostgres();
  const port = await freePort();
  const child = await spawn(["api-server", "--port", String(port)], { DATABASE_URL: url, ...(await redis()) });
  await waitFor("the liveness probe to be answered", async () => (await statusOf(port, "/livez")) === 200);
  await waitFor("the readiness probe to say why", async () => {
    const { status, body } = await ask(port, "/readyz");
    return status === 503 && body.includes("postgres_unavailable");
  });
  const refused = await fetch(`http://127.0.0.1:${port}/v2/apis.createApi`, { method: "POST", body: "{}" });
  expect(refused.status).toBe(500);
  expect(await refused.text()).toContain('/errors/service_unavailable"');
  // Several attempts, of which only the first is logged.
  await new Promise((done) => setTimeout(done, 3_000));
  const about = child
    .stderr()
    .split("\n")
    .filter((text) => text.includes("Postgres"));
  expect(about).toHaveLength(1);
  expect(about[0]).toContain('"reason":"postgres_unavailable"');
  line.mend();
  await waitFor("it to be ready", async () => (await statusOf(port, "/readyz")) === 200);
  expect(await statusOf(port, "/livez")).toBe(200);
  expect(await child.stop()).toEqual({ code: 0, signal: null });
});

test("api-server without migration permission is unready until the database is migrated", async () => {
  const database = await createEmptyDatabase();
  onTestFinished(() => database.drop());
  const port = await freePort();
  await spawn(["api-server", "--migrate", "off", "--port", String(port)], {
    DATABASE_URL: database.url,
    ...(await redis()),
  });
  await waitFor("the readiness probe to say why", async () => {
    const { status, body } = await ask(port, "/readyz");
    return status === 503 && body.includes("schema-behind");
  });
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  onTestFinished(() => client.end());
  expect((await client.query("select to_regclass('schema_migrations') as found")).rows).toEqual([{ found: null }]);

  const folder = await mkdtemp(join(tmpdir(), "postern-migrate-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, "url"), `${database.url}\n`);
  const { DATABASE_URL: _, ...env } = process.env;
  const args = [PROGRAM, "migrate", "--database-url-file", join(folder, "url")];
  await promisify(execFile)(process.execPath, args, { cwd: ROOT, env });
  await waitFor("it to be ready", async () => (await statusOf(port, "/readyz")) === 200);
});

test("api-server waiting for Postgres exits on SIGTERM", async () => {
  const { url } = await cutPostgres();
  const port = await freePort();
  const child = await spawn(["api-server", "--port", String(port)], { DATABASE_URL: url, ...(await redis()) });
  await waitFor("it to wait", async () => (await ask(port, "/readyz")).body.includes("postgres_unavailable"));
  expect(await child.stop()).toEqual({ code: 0, signal: null });
});

test("migration that cannot succeed ends the api-server with one error line", async () => {
  const database = await createEmptyDatabase();
  onTestFinished(() => database.drop());
  const { default: pg } = await import("pg");
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  await client.query("create table workspaces (id text)");
  await client.end();
  const port = await freePort();
  const child = await spawn(["api-server", "--port", String(port)], { DATABASE_URL: database.url, ...(await redis()) });
  expect(await child.exited).toEqual({ code: 1, signal: null });
  expect(child.stderr()).toMatch(
    /^postern api-server: migration 0001-initial\.sql: relation "workspaces" already exists$/m,
  );
});

test("`postern ingest` started without Postgres reports unready and recovers", async () => {
  const { url, line } = await cutPostgres();
  const port = await freePort();
  const child = await spawn(["ingest", "--admin-port", String(port)], { DATABASE_URL: url, ...(await redis()) });
  await waitFor("the liveness probe to be answered", async () => (await statusOf(port, "/livez")) === 200);
  await waitFor("the readiness probe to say why", async () => {
    const { status, body } = await ask(port, "/readyz");
    return status === 503 && body.includes("postgres_unavailable");
  });
  line.mend();
  await waitFor("it to be ready", async () => (await statusOf(port, "/readyz")) === 200);
  expect((await ask(port, "/metrics")).body).toContain("postern_rollup_lag_seconds");
  expect(await child.stop()).toEqual({ code: 0, signal: null });
});

test("api-server started without Redis serves and uses Redis when available", async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const own = await startOwnRedis();
  onTestFinished(() => own.stop());
  await own.kill();
  const port = await freePort();
  const child = await spawn(["api-server", "--port", String(port)], { DATABASE_URL: database.url, REDIS_URL: own.url });
  await waitFor("it to be ready", async () => (await statusOf(port, "/readyz")) === 200);
  expect((await ask(port, "/readyz?verbose")).body).toContain("redis_unavailable");
  await own.restart();
  await waitFor(
    "it to use Redis",
    async () => !(await ask(port, "/readyz?verbose")).body.includes("redis_unavailable"),
  );
  expect(await child.stop()).toEqual({ code: 0, signal: null });
});

test.each([
  { name: "one Redis", cluster: false },
  { name: "a Redis Cluster", cluster: true },
])("gate started without Redis ($name) stays unready until it gets its policy", async ({ cluster }) => {
  const own = await startOwnRedis(cluster ? { cluster, args: ["--cluster-announce-ip", "127.0.0.1"] } : {});
  onTestFinished(() => own.stop());
  await own.kill();
  const [port, adminPort] = [await freePort(), await freePort()];
  const url = `${own.url}${cluster ? "?cluster=true" : ""}`;
  const args = ["sidecar", "--workspace", WORKSPACE, "--policy", POLICY, "--upstream", "http://127.0.0.1:9"];
  const ports = ["--port", String(port), "--admin-port", String(adminPort)];
  const child = await spawn([...args, ...ports], { REDIS_URL: url });
  await waitFor("the liveness probe to be answered", async () => (await statusOf(adminPort, "/livez")) === 200);
  expect(await statusOf(adminPort, "/readyz")).toBe(503);
  expect((await call(port)).status).toBe(503);
  await own.restart();
  const edge = await openRedisEdge({ url, clientName: "test" });
  onTestFinished(() => edge.close());
  await waitFor("the store to be there", () => edge.ping().then(() => true));
  const records = new Records(edge);
  await records.begin();
  await records.putPolicy(aPolicy());
  await records.complete();
  await waitFor("it to be ready", async () => {
    await records.heartbeat();
    return (await statusOf(adminPort, "/readyz")) === 200;
  });
  expect(await child.stop()).toEqual({ code: 0, signal: null });
});

test("gate with an unresolvable Redis host stays unready and keeps running", async () => {
  const [port, adminPort] = [await freePort(), await freePort()];
  const args = ["sidecar", "--workspace", WORKSPACE, "--policy", POLICY, "--upstream", "http://127.0.0.1:9"];
  const ports = ["--port", String(port), "--admin-port", String(adminPort)];
  const child = await spawn([...args, ...ports], { REDIS_URL: "redis://redis.invalid:6379?cluster=true" });
  await waitFor("the liveness probe to be answered", async () => (await statusOf(adminPort, "/livez")) === 200);
  expect(await statusOf(adminPort, "/readyz")).toBe(503);
  expect(await child.stop()).toEqual({ code: 0, signal: null });
});
