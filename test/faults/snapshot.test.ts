import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { copyFileSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { CompiledPolicy } from "../../core/policies/policy.ts";
import { type Edge, openRedisEdge } from "../../edge/open.ts";
import { RedisKeys } from "../../edge/redis/keys.ts";
import { aPolicy, aRule, call, POLICY, Records, startApp, type TestApp, WORKSPACE, withKey } from "../harness/gate.ts";
import { type OwnRedis, startOwnRedis } from "../harness/redis.ts";
import { isReady, type SidecarProcess, spawnUnready } from "../harness/sidecar-process.ts";
import { waitFor } from "../harness/wait.ts";

/*
 * A gate killed during a Redis outage restarts from its snapshot on disk: docs/decisions/0023-a-snapshot-on-the-pod.md. Redis keeps its
 * data over a restart.
 */

const HOUR = 3_600_000;
const OTHER_WORKSPACE = "ws_other";
const KEPT = ["--appendonly", "yes", "--appendfsync", "always"];

let redis: OwnRedis;
let edge: Edge;
let app: TestApp;
let beat: NodeJS.Timeout;
let records: Records;
const pods: Pod[] = [];

beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.close());

beforeEach(async () => {
  redis = await startOwnRedis({ args: KEPT });
  edge = await openRedisEdge({ url: redis.url, clientName: "test-relay" });
  await storeIsThere();
  records = await project(WORKSPACE);
});
afterEach(async () => {
  clearInterval(beat);
  for (const pod of pods.splice(0)) await pod.remove();
  await edge.close();
  await redis.stop();
});

const storeIsThere = () => waitFor("the store to be there", () => edge.ping().then(() => true));

/** Has members of format 2. */
const limited = aRule({
  name: "limited",
  path: { template: "/limited/{item}" },
  ratelimits: [
    {
      scope: { kind: "name", name: "all" },
      by: ["key", "path.item"],
      limit: 3,
      durationMs: HOUR,
      cost: 1,
      accuracy: "strict",
    },
  ],
});

async function project(workspaceId: string, policy: Partial<CompiledPolicy> = {}): Promise<Records> {
  const written = new Records(edge, workspaceId);
  await written.begin();
  await written.putPolicy(aPolicy({ formatVersion: 2, rules: [limited], ...policy }));
  await written.complete();
  clearInterval(beat);
  beat = setInterval(() => void written.heartbeat().catch(() => undefined), 300);
  return written;
}

/** A gate with a disk that outlives its process, like a container in its pod. */
class Pod {
  readonly dir: string;
  readonly secret = randomBytes(32).toString("base64url");
  readonly workspaceId: string;
  #sidecar: SidecarProcess | undefined;

  constructor(dir: string, workspaceId: string) {
    this.dir = dir;
    this.workspaceId = workspaceId;
    pods.push(this);
  }

  get sidecar(): SidecarProcess {
    if (this.#sidecar === undefined) throw new Error("the pod does not run");
    return this.#sidecar;
  }

  get file(): string {
    return join(this.dir, "snapshot");
  }

  /** Starts the process and returns the duration in ms until it listens. */
  async start(env: Record<string, string> = {}): Promise<number> {
    const sinceMs = performance.now();
    this.#sidecar = await spawnUnready({
      REDIS_URL: redis.url,
      POSTERN_WORKSPACE: this.workspaceId,
      POSTERN_POLICY: POLICY,
      POSTERN_UPSTREAM: app.url,
      POSTERN_SNAPSHOT_DIR: this.dir,
      POSTERN_SNAPSHOT_KEY: this.secret,
      ...env,
    });
    return performance.now() - sinceMs;
  }

  async startReady(): Promise<void> {
    await this.start();
    await waitFor("the gate to be ready", () => isReady(this.sidecar));
  }

  async kill(): Promise<void> {
    this.sidecar.process.kill("SIGKILL");
    await this.sidecar.process.exited;
  }

  async status(key: string, path = "/"): Promise<number> {
    return (await call(this.sidecar.port, { path, ...withKey(key) })).status;
  }

  async readyz(): Promise<{
    ready: boolean;
    snapshot: string | null;
    stalenessMs: number;
    freshness: string | null;
    source: { usable: boolean };
  }> {
    const { status, body } = await call(this.sidecar.adminPort, { path: "/readyz" });
    return { ready: status === 200, ...JSON.parse(body) };
  }

  async metric(series: string): Promise<number> {
    const { body } = await call(this.sidecar.adminPort, { path: "/metrics" });
    return Number(
      body
        .split("\n")
        .find((line) => line.startsWith(`${series} `))
        ?.slice(series.length + 1) ?? Number.NaN,
    );
  }

  /** Waits until the current state is on disk. */
  async isKept(): Promise<void> {
    const written = () => this.metric('postern_sidecar_snapshot_writes_total{result="written"}');
    const before = await written();
    await waitFor("the snapshot to be written", async () => (await written()) > before, { deadlineMs: 20_000 });
  }

  async remove(): Promise<void> {
    await this.#sidecar?.process.stop();
    await rm(this.dir, { recursive: true, force: true });
  }
}

const aPod = async (workspaceId = WORKSPACE): Promise<Pod> =>
  new Pod(await mkdtemp(join(tmpdir(), "postern-snapshot-")), workspaceId);

/** Returns a pod that has served a key and was stopped with a complete snapshot, during a Redis outage. */
async function aPodInOutage(): Promise<{ pod: Pod; key: string; other: string }> {
  const pod = await aPod();
  await pod.startReady();
  const [key, other] = [await records.putKey(), await records.putKey()];
  for (const each of [key, other]) expect(await pod.status(each)).toBe(200);
  await pod.sidecar.process.stop();
  await redis.kill();
  return { pod, key, other };
}

test("gate killed during a Redis outage serves its snapshot within a second", async () => {
  const pod = await aPod();
  await pod.startReady();
  const [key, limitedKey] = [await records.putKey(), await records.putKey()];
  const expiring = await records.putKey({ expiresMs: (await edge.writer.nowMs()) + 20_000 });
  for (const each of [key, limitedKey, expiring]) expect(await pod.status(each)).toBe(200);
  await pod.isKept();
  await redis.kill();
  await pod.kill();

  const startMs = await pod.start();
  const sinceMs = performance.now();
  expect(await pod.status(key)).toBe(200);
  const servedMs = performance.now() - sinceMs;
  console.log(`listening after ${Math.round(startMs)} ms, served ${Math.round(servedMs)} ms later`);
  expect(servedMs).toBeLessThan(1_000);
  const codes = [];
  for (let i = 0; i < 4; i++) codes.push(await pod.status(limitedKey, "/limited/1"));
  expect(codes).toEqual([200, 200, 200, 429]);
  expect(await pod.status("a-key-that-nothing-knows")).toBe(503);
  const state = await pod.readyz();
  expect(state).toMatchObject({ ready: true, snapshot: "in use", freshness: "Fresh" });
  expect(await pod.metric("postern_sidecar_snapshot_active")).toBe(1);
  expect(await pod.metric("postern_sidecar_staleness_seconds")).toBeGreaterThan(0);

  // A restart does not reduce staleness.
  const { stalenessMs } = state;
  await pod.kill();
  await pod.start();
  expect((await pod.readyz()).stalenessMs).toBeGreaterThan(stalenessMs);
  // Uses the stored Redis clock, not the start of the process.
  await waitFor("the key to expire", async () => (await pod.status(expiring)) === 401, { deadlineMs: 25_000 });
  expect(await pod.status(key)).toBe(200);

  await redis.restart();
  await storeIsThere();
  // The connection for reads may be open again later than the connection of the change stream.
  await waitFor("the gate to hear of the store and to read it", async () => {
    const { snapshot, source } = await pod.readyz();
    return snapshot === null && source.usable;
  });
  expect(await pod.status("a-key-that-nothing-knows")).toBe(401);
}, 90_000);

describe("a key that was revoked while both were down", () => {
  test.each([
    { how: "with its entry in the change stream", meanwhile: async () => {}, otherAfterwards: 200 },
    {
      how: "when its entry was trimmed from the change stream",
      meanwhile: async (raw: Redis) => {
        await records.putKey();
        await raw.xtrim(new RedisKeys().changes(WORKSPACE), "MAXLEN", 1);
        await raw.del(new RedisKeys().history(WORKSPACE));
      },
      otherAfterwards: 503,
    },
  ])(
    "gate with a snapshot rejects a revoked key as soon as Redis recovers ($how)",
    async ({ meanwhile, otherAfterwards }) => {
      const { pod, key, other } = await aPodInOutage();
      await redis.restart();
      await storeIsThere();
      await records.deleteKey(key);
      const raw = new Redis(redis.url);
      await meanwhile(raw);
      raw.disconnect();
      clearInterval(beat);
      await redis.kill();

      await pod.start();
      expect(await pod.status(key)).toBe(200);
      await redis.restart();
      await storeIsThere();
      const answeredMs = performance.now();
      // 503: the gate knows of the change but reads no record before the relay has checked Redis.
      await waitFor("the key to be refused", async () => (await pod.status(key)) !== 200, { everyMs: 5 });
      const tookMs = performance.now() - answeredMs;
      console.log(`refused ${Math.round(tookMs)} ms after Redis answered another client`);
      // The connection of the gate retries within two seconds.
      expect(tookMs).toBeLessThan(4_000);
      // The state persists through another Redis outage. Unchanged records stay cached unless changes cannot be determined.
      await records.heartbeat();
      await waitFor("the gate to hear of the store", async () => (await pod.readyz()).snapshot === null);
      await waitFor("the gate to read the record", async () => (await pod.status(key)) === 401);
      await redis.kill();
      expect(await pod.status(key)).not.toBe(200);
      expect(await pod.status(other)).toBe(otherAfterwards);
    },
    60_000,
  );

  test("gate discards its snapshot when Redis returns with another projection", async () => {
    const { pod, key, other } = await aPodInOutage();
    await pod.start();
    expect(await pod.status(key)).toBe(200);
    await redis.restart({ args: ["--appendonly", "no"] });
    await storeIsThere();
    clearInterval(beat);
    const anew = new Records(edge, WORKSPACE);
    await anew.begin("projection-2");
    await anew.putPolicy(aPolicy({ formatVersion: 2, rules: [limited] }));
    await anew.complete();
    await waitFor("the key to be refused", async () => (await pod.status(key)) === 401);
    // All references of the record are cached again.
    expect(await pod.status(await anew.putKey())).toBe(200);
    await redis.kill();
    for (const each of [key, other]) expect(await pod.status(each)).not.toBe(200);
  }, 60_000);
});

test("revocation is soon written to the snapshot and survives a kill", async () => {
  const pod = await aPod();
  await pod.startReady();
  const [key, other] = [await records.putKey(), await records.putKey()];
  for (const each of [key, other]) expect(await pod.status(each)).toBe(200);
  await pod.isKept();
  await records.deleteKey(key);
  await waitFor("the gate to refuse it", async () => (await pod.status(key)) === 401);
  await pod.isKept();
  await redis.kill();
  await pod.kill();
  await pod.start();
  expect([await pod.status(key), await pod.status(other)]).toEqual([503, 200]);
}, 60_000);

test("policy action Deny uses the snapshot age after a restart", async () => {
  await records.putPolicy(aPolicy({ onStale: { afterMs: 4_000, action: "Deny", denyAfterMs: 900_000 } }));
  const { pod, key } = await aPodInOutage();
  await pod.start();
  await waitFor("the snapshot to be too old", async () => (await pod.status(key)) === 503, { deadlineMs: 15_000 });
  await pod.kill();
  await pod.start();
  expect(await pod.status(key)).toBe(503);
  expect(await pod.readyz()).toMatchObject({ ready: false, snapshot: "in use", freshness: "Expired" });
}, 60_000);

describe("a foreign or damaged snapshot file", () => {
  // The process matters here; sidecar/snapshot/snapshot.test.ts has many more cases.
  test.each<{ what: string; spoil: (pod: Pod) => unknown; env?: Record<string, string> }>([
    { what: "of another policy", spoil: () => {}, env: { POSTERN_POLICY: "pol_other" } },
    { what: "of 10 GB", spoil: (pod) => truncateSync(pod.file, 10 * 1024 ** 3) },
    {
      what: "that is a pipe",
      spoil: (pod) => {
        rmSync(pod.file);
        execFileSync("mkfifo", [pod.file]);
      },
    },
  ])(
    "snapshot file $what admits no key and does not delay the start of a gate",
    async ({ spoil, env }) => {
      const { pod, key } = await aPodInOutage();
      spoil(pod);
      const startMs = await pod.start(env);
      const { ready, snapshot } = await pod.readyz();
      const got = { status: await pod.status(key), ready, snapshot, inTime: startMs < 6_000 };
      expect(got).toEqual({ status: 503, ready: false, snapshot: null, inTime: true });
      expect(pod.sidecar.process.stderr()).toContain("the snapshot on disk is not used");
      await redis.restart();
      if (env === undefined) await waitFor("the key to be served", async () => (await pod.status(key)) === 200);
    },
    60_000,
  );
});

test("unwritable snapshot directory is logged once and counted while the gate serves", async () => {
  const pod = await aPod();
  await pod.start({ POSTERN_SNAPSHOT_DIR: "/proc" });
  await waitFor("the gate to be ready", () => isReady(pod.sidecar));
  const key = await records.putKey();
  expect(await pod.status(key)).toBe(200);
  const failed = () => pod.metric('postern_sidecar_snapshot_writes_total{result="failed"}');
  await waitFor("two writes to fail", async () => (await failed()) > 1, { deadlineMs: 20_000 });
  expect(pod.sidecar.process.stderr().split("the snapshot cannot be written")).toHaveLength(2);
  expect(await pod.status(key)).toBe(200);
}, 60_000);

test("gates of two tenants never serve keys from each other's snapshot", async () => {
  const others = await project(OTHER_WORKSPACE);
  const [pod, otherPod] = [await aPod(), await aPod(OTHER_WORKSPACE)];
  await pod.startReady();
  await otherPod.startReady();
  const [key, otherKey] = [await records.putKey(), await others.putKey()];
  expect([await pod.status(key), await otherPod.status(otherKey)]).toEqual([200, 200]);
  await Promise.all([pod, otherPod].map(({ sidecar }) => sidecar.process.stop()));
  await redis.kill();
  await Promise.all([pod.start(), otherPod.start()]);
  expect([await pod.status(key), await otherPod.status(otherKey)]).toEqual([200, 200]);
  expect([await pod.status(otherKey), await otherPod.status(key)]).toEqual([503, 503]);
  await Promise.all([pod.kill(), otherPod.kill()]);
  copyFileSync(otherPod.file, pod.file);
  await pod.start();
  expect([await pod.status(key), await pod.status(otherKey)]).toEqual([503, 503]);
}, 60_000);

test("snapshot contains no plaintext keys or names, and no temporary file remains", async () => {
  const pod = await aPod();
  await pod.startReady();
  const key = await records.putKey({ name: "name-of-the-key", permissions: ["orders.write"] });
  expect(await pod.status(key)).toBe(200);
  writeFileSync(join(pod.dir, "snapshot.next"), "of a process that was killed");
  await pod.isKept();
  await pod.sidecar.process.stop();
  const text = readFileSync(pod.file, "latin1");
  for (const word of [key, "name-of-the-key", "orders.write", POLICY]) expect(text).not.toContain(word);
  expect(readdirSync(pod.dir)).toEqual(["snapshot"]);
}, 60_000);
