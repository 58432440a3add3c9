import { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { startOwnRedis } from "../../test/harness/redis.ts";
import { waitFor } from "../../test/harness/wait.ts";
import type { Edge } from "../open.ts";
import { openRedisEdge } from "../open.ts";
import { RedisKeys } from "../redis/keys.ts";
import type { GateRef, GateUsers } from "./contract.ts";

const KEYS = new RedisKeys();
const aRef = (changes: Partial<GateRef> = {}): GateRef => ({
  workspaceId: "ws_1",
  policyId: "pol_1",
  podId: "shop/orders-1",
  podUid: "uid-1",
  ...changes,
});

interface Opened {
  readonly raw: Redis;
  readonly edge: Edge;
  readonly users: GateUsers;
  readonly port: number;
  names(): Promise<string[]>;
}

async function open(options: Parameters<typeof startOwnRedis>[0] = {}, search = ""): Promise<Opened> {
  const own = await startOwnRedis(options);
  onTestFinished(() => own.stop());
  const raw = new Redis(own.url);
  onTestFinished(() => raw.disconnect());
  const edge = await openRedisEdge({ url: `${own.url}${search}`, clientName: "users" });
  onTestFinished(() => edge.close());
  await waitFor("the connection", () => edge.ping().then(() => true));
  if (edge.gateUsers === undefined) throw new Error("this store has no users");
  const names = async () =>
    ((await raw.call("ACL", "USERS")) as string[]).filter((name) => name.startsWith("ps-gate-"));
  return { raw, edge, users: edge.gateUsers, port: own.port, names };
}

/** Whether Redis accepts the credentials. */
async function signsIn(port: number, { username, password }: { username: string; password: string }): Promise<boolean> {
  const redis = new Redis({ port, host: "127.0.0.1", lazyConnect: true, retryStrategy: null });
  redis.on("error", () => undefined);
  try {
    return (await redis.auth(username, password)) === "OK";
  } catch {
    return false;
  } finally {
    redis.disconnect();
  }
}

const CLUSTER = { cluster: true, args: ["--cluster-announce-ip", "127.0.0.1"] };

test.each([
  { name: "one Redis", options: {}, search: "" },
  { name: "a Redis Cluster", options: CLUSTER, search: "?cluster=true" },
])("gate has one Redis user, and only its last password is valid, on $name", async ({ options, search }) => {
  const { users, port, names } = await open(options, search);
  const first = await users.issue(aRef());
  expect(await signsIn(port, first)).toBe(true);
  const second = await users.issue(aRef());
  expect(second.username).toBe(first.username);
  expect([await signsIn(port, first), await signsIn(port, second)]).toEqual([false, true]);
  // Another pod of the same name, another policy or another workspace gets another user.
  for (const changes of [{ podUid: "uid-2" }, { policyId: "pol_2" }, { workspaceId: "ws_2" }])
    await users.issue(aRef(changes));
  expect(await names()).toHaveLength(4);
});

test("expired Redis users of gates are deleted in batches of 100 and disconnected", async () => {
  const { raw, users, port, names } = await open();
  const kept = await users.issue(aRef());
  const gone = await Promise.all(Array.from({ length: 130 }, (_, i) => users.issue(aRef({ podUid: `gone-${i}` }))));
  const [one] = gone;
  if (one === undefined) throw new Error("no user was made");
  const connection = new Redis({ port, host: "127.0.0.1", username: one.username, password: one.password });
  connection.on("error", () => undefined);
  onTestFinished(() => connection.disconnect());
  await waitFor("its connection", () => connection.status === "ready");
  for (const { username } of gone) await raw.zadd(KEYS.gateUsers(), 1, username);
  expect([await users.sweep(), await users.sweep(), await users.sweep()]).toEqual([100, 30, 0]);
  expect(await names()).toEqual([kept.username]);
  await waitFor("its connection to be closed", () => connection.status !== "ready");
  expect(await signsIn(port, kept)).toBe(true);
});

const HOUR_MS = 3_600_000;

test.each([
  {
    name: "is deleted when another one was renewed two hours later",
    agoMs: 2.2 * HOUR_MS,
    otherAgoMs: 6 * 60_000,
    stays: false,
  },
  { name: "stays while its gate may still try", agoMs: 1.9 * HOUR_MS, otherAgoMs: 6 * 60_000, stays: true },
  {
    name: "stays when no other was renewed since: no gate may have been able to",
    agoMs: 5.9 * HOUR_MS,
    otherAgoMs: 5.8 * HOUR_MS,
    stays: true,
  },
  { name: "stays in the first minutes after an outage", agoMs: 5 * HOUR_MS, otherAgoMs: 60_000, stays: true },
])(
  "Redis user of a gate that was not renewed is deleted only when expected: it $name",
  async ({ agoMs, otherAgoMs, stays }) => {
    const { raw, users, names } = await open();
    const [silent, other] = [await users.issue(aRef()), await users.issue(aRef({ podUid: "uid-2" }))];
    const validTo = Number(await raw.zscore(KEYS.gateUsers(), silent.username));
    await raw.zadd(KEYS.gateUsers(), validTo - agoMs, silent.username, validTo - otherAgoMs, other.username);
    expect(await users.sweep()).toBe(stays ? 0 : 1);
    expect((await names()).sort()).toEqual((stays ? [silent, other] : [other]).map(({ username }) => username).sort());
  },
);

test("Redis users of gates expire even after Redis loses its data", async () => {
  const { raw, users, names } = await open();
  const { username } = await users.issue(aRef());
  await raw.call("ACL", "SETUSER", "somebody-else", "on", ">x");
  await raw.flushall();
  expect(await users.sweep()).toBe(0);
  const score = Number(await raw.zscore(KEYS.gateUsers(), username));
  expect(score).toBeGreaterThan(Date.now() + 3_600_000);
  expect(await raw.zcard(KEYS.gateUsers())).toBe(1);
  await raw.zadd(KEYS.gateUsers(), 1, username);
  await users.issue(aRef());
  expect(await users.sweep()).toBe(0);
  expect(await names()).toEqual([username]);
});

test("issuing a Redis user fails within its timeout when Redis hangs", async () => {
  const own = await startOwnRedis();
  onTestFinished(() => own.stop());
  const edge = await openRedisEdge({ url: own.url, clientName: "users" });
  onTestFinished(() => edge.close());
  await waitFor("the connection", () => edge.ping().then(() => true));
  process.kill(own.pid, "SIGSTOP");
  await expect(edge.gateUsers?.issue(aRef())).rejects.toThrow();
  process.kill(own.pid, "SIGCONT");
});

test("pod report is listed only under the pod name that is registered for its Redis user", async () => {
  const { raw, edge, users, port } = await open();
  await edge.loadScripts();
  const { username, password } = await users.issue(aRef());
  const url = `redis://${username}:${password}@127.0.0.1:${port}`;
  const own = await openRedisEdge({ url, clientName: "gate", reportsAreOwn: true });
  onTestFinished(() => own.close());
  await waitFor("the connection", () => own.ping().then(() => true));
  const report = { workspaceId: "ws_1", policyId: "pol_1", generation: 1, version: 2, stalenessMs: 3 };
  await own.pods.report({ ...report, podId: "shop/orders-1" });
  await edge.pods.report({ ...report, podId: "another" });
  await expect(own.pods.report({ ...report, podId: "shop/orders-2" })).rejects.toThrow(/NOPERM|permission/i);
  await raw.hset(KEYS.podsOwn("ws_1", "pol_1", "shop/forged"), "shop/forged", "1 {}");
  // The user may count the pods of its own policy only.
  const counted = { workspaceId: "ws_1", policyId: "pol_1", podId: "shop/orders-1" };
  expect(await own.pods.countAlive(counted)).toBe(1);
  expect(await edge.pods.countAlive({ ...counted, podId: "another" })).toBe(2);
  expect(await own.pods.countAlive({ ...counted, policyId: "pol_2" })).toBeUndefined();
  const listed = await edge.pods.list({ workspaceId: "ws_1", policyId: "pol_1" });
  expect(listed.map(({ podId }) => podId)).toEqual(["another", "shop/orders-1"]);
  await own.pods.remove({ workspaceId: "ws_1", policyId: "pol_1", podId: "shop/orders-1" });
  expect(await edge.pods.list({ workspaceId: "ws_1", policyId: "pol_1" })).toHaveLength(1);
});
