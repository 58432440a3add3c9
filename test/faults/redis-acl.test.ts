import { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { openRedisEdge } from "../../edge/open.ts";
import { SET_RECORDS } from "../../edge/projection/scripts.ts";
import { controlPlaneAclRules, podAclRules } from "../../edge/redis/acl.ts";
import { countedHash, RedisKeys } from "../../edge/redis/keys.ts";
import { startOwnRedis } from "../harness/redis.ts";
import { waitFor } from "../harness/wait.ts";
import { makeKey } from "./client.ts";
import { spawnGate } from "./gate-process.ts";
import { commandsBeyond, expectRefused, OTHER_WORKSPACE } from "./refused-commands.ts";
import { openSystem, type System } from "./system.ts";

const HOUR = 3_600_000;

async function addUser(system: System, name: string, rules: readonly string[], admin = system.raw): Promise<string> {
  await admin.call("ACL", "SETUSER", name, ...rules, ">secret");
  const { host, port } = admin.options;
  return `redis://${name}:secret@${host}:${port}`;
}

/** Returns the commands and keys that the server has denied since the last call, by user. */
async function refusals(admin: Redis): Promise<string[]> {
  const entries = (await admin.call("ACL", "LOG")) as unknown[][];
  await admin.call("ACL", "LOG", "RESET");
  const field = (entry: unknown[], name: string) => String(entry[entry.indexOf(name) + 1]);
  return entries.map((entry) => `${field(entry, "username")}: ${field(entry, "reason")} ${field(entry, "object")}`);
}

/** Starts an api-server and a gate, each with its own user, on a test Redis. */
async function openGuarded(eventsOwn: boolean) {
  const system = await openSystem({ ownRedis: true });
  const { prefix } = system;
  const events = eventsOwn ? await startOwnRedis() : undefined;
  const ofEvents = events && new Redis(events.url);
  onTestFinished(async () => {
    ofEvents?.disconnect();
    await events?.stop();
  });
  const central = { REDIS_URL: await addUser(system, "central", controlPlaneAclRules({ prefix })) };
  const centralEvents = ofEvents && (await addUser(system, "central", controlPlaneAclRules({ prefix }), ofEvents));
  const api = await system.spawnApi({ ...central, ...(centralEvents && { EVENTS_REDIS_URL: centralEvents }) });
  const workspaceId = await system.workspaceId();
  const url = await addUser(system, "pod", podAclRules({ workspaceId, prefix }));
  const eventsUrl =
    ofEvents && (await addUser(system, "pod", podAclRules({ workspaceId, prefix, store: "events" }), ofEvents));
  const edge = system.closing(await openRedisEdge({ url, eventsUrl, prefix, clientName: "pod" }));
  const env = { REDIS_URL: url, ...(eventsUrl && { EVENTS_REDIS_URL: eventsUrl }) };
  return { system, api, workspaceId, edge, url, env, ofEvents, keys: new RedisKeys(prefix) };
}

test.each([
  { name: "on one Redis", eventsOwn: false },
  { name: "with events on another", eventsOwn: true },
])("gate and api-server work with least-privilege Redis users: $name", async ({ eventsOwn }) => {
  const { system, api, workspaceId, edge, env, ofEvents, keys } = await openGuarded(eventsOwn);
  const { apiId, key, keyId } = await makeKey(api, {
    credits: { remaining: 100 },
    ratelimits: [{ name: "all", limit: 1_000, duration: HOUR, autoApply: true }],
  });
  const policy = { rules: [{ ratelimits: [{ name: "w", limit: 4, duration: "1h" }] }] };
  const gate = await spawnGate(system, api, { apiId, policy, env });
  // Exercises limits and credits.
  const codes = [];
  for (let i = 0; i < 6; i++) codes.push(await gate.status(key));
  expect(codes).toEqual([200, 200, 200, 200, 429, 429]);
  await waitFor(
    "what was spent to be written",
    async () => (await api.data("keys.getKey", { keyId })).credits.remaining === 96,
  );
  // Exercises events, the report, local limits and the change stream.
  edge.sink.add({ ...event(workspaceId, keyId), timeMs: Date.now() });
  await edge.sink.flush();
  expect(edge.sink.dropped()).toBe(0);
  await waitFor("the events to be stored", async () => {
    const { rowCount } = await system.db.query("select from verification_events where key_id = $1", [keyId]);
    return (rowCount ?? 0) >= 7;
  });
  expect(await system.raw.keys(`${system.prefix}:${workspaceId}:pods:*`)).toHaveLength(1);
  expect(await edge.pods.countAlive({ workspaceId, policyId: "pol_any", podId: "pod-1" })).toBe(1);
  const counters = edge.counters({ timeoutMs: 1_000 });
  const charge = {
    workspaceId,
    scope: { kind: "name", value: "l" },
    identifier: "u",
    limit: 5,
    durationMs: HOUR,
    cost: 1,
  } as const;
  const consume = (accuracy: "strict" | "local") => counters.consume({ limits: [{ ...charge, accuracy }] });
  await consume("local");
  await waitFor(
    "the count to be exchanged",
    async () => (await system.raw.keys(`${system.prefix}:*:rl:*`)).length >= 3,
  );
  // A script removes a counter of another type.
  const counter = keys.counter(workspaceId, countedHash("name", "l", "other"), HOUR);
  await system.raw.lpush(counter, "x");
  expect(await counters.consume({ limits: [{ ...charge, identifier: "other", accuracy: "strict" }] })).toMatchObject({
    passed: true,
  });
  expect(await system.raw.type(counter)).toBe("hash");
  await api.data("keys.updateKey", { keyId, enabled: false });
  await waitFor("the change to be followed", async () => (await gate.status(key)) === 401);
  // Looks up a namespace by name as the Envoy rate limit service does.
  const name = "named by {no} rule";
  await api.data("ratelimit.limit", { namespace: name, identifier: "u", limit: 5, duration: HOUR });
  await waitFor("the name to be read", async () => {
    const batch = await edge.source.read([{ workspaceId, kind: "namespaceName", id: name }]);
    return batch.usable && batch.records[0]?.state === "found";
  });
  // The api-server loads the scripts again after a Redis restart, without the pod.
  for (const admin of [system.raw, ofEvents]) await admin?.call("SCRIPT", "FLUSH");
  expect(await refusals(system.raw)).toEqual([]);
  expect(await (ofEvents ? refusals(ofEvents) : [])).toEqual([]);
  await waitFor("the scripts to be loaded", () => consume("strict"));
});

test("Redis user of a pod cannot write relay keys or access other workspaces", async () => {
  const { system, api, workspaceId, url } = await openGuarded(false);
  const { keyId } = await makeKey(api);
  const [record = ""] = await waitFor("the key to be projected", async () => {
    const found = await system.raw.keys(`${system.prefix}:${workspaceId}:k:*`);
    return found.length > 0 && found;
  });
  await system.raw.set(`${system.prefix}:${OTHER_WORKSPACE}:k:{x}`, "theirs");
  await system.raw.script("LOAD", SET_RECORDS.lua);
  const dump = await system.raw.dumpBuffer(record);
  const aRecord = /^prj_\S+ \d+ \{"apiId"/;
  const pod = new Redis(url);
  onTestFinished(() => pod.disconnect());
  await waitFor("the connection", () => pod.status === "ready");
  expect(String(await pod.call("getrange", record, "0", "-1"))).toMatch(aRecord);

  const beyond = commandsBeyond({ prefix: system.prefix, workspaceId, keyId, record, dump });
  for (const command of beyond) await expectRefused(pod, command);
  expect(await system.raw.get(record)).toMatch(aRecord);
});

const event = (workspaceId: string, keyId: string) =>
  ({
    type: "verification",
    id: `ev_acl_${keyId}`,
    requestId: "req_1",
    workspaceId,
    keySpaceId: "ks_1",
    apiId: "api_1",
    keyId,
    outcome: "VALID",
    tags: [],
    region: "",
    source: "sidecar",
    spentCredits: 0,
    latencyMs: 1,
  }) as const;
