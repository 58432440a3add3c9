import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { CountersUnavailable, type LimitCharge } from "../../../edge/counters/contract.ts";
import { RedisEventSource } from "../../../edge/events/redis.ts";
import { type Edge, openRedisEdge } from "../../../edge/open.ts";
import { ProjectionChanged } from "../../../edge/projection/contract.ts";
import { openProjection } from "../../../edge/projection/projection.ts";
import { connectRedis } from "../../../edge/redis/connect.ts";
import { RedisKeys } from "../../../edge/redis/keys.ts";
import { type OwnRedis, startOwnRedis } from "../../harness/redis.ts";
import { waitFor } from "../../harness/wait.ts";
import { anEvent } from "./an-event.ts";
import { aName } from "./edges.ts";
import { aWorkspace } from "./projected.ts";
import { Recording } from "./recording.ts";

/** What only a Redis can do: be emptied, restarted, put to sleep, or be written to behind our back. */
describe("the edge when Redis fails", () => {
  let redis: OwnRedis;
  let raw: Redis;
  let edge: Edge;
  let ws: ReturnType<typeof aWorkspace>;
  let projectionId: string;
  const keys = new RedisKeys();

  beforeAll(async () => {
    redis = await startOwnRedis({ args: ["--save", "", "--dbfilename", "dump.rdb"] });
    raw = new Redis(redis.url);
    raw.on("error", () => {});
  });
  afterAll(async () => {
    raw.disconnect();
    await redis.stop();
  });
  beforeEach(async () => {
    edge = await openRedisEdge({ url: redis.url, clientName: "faults" });
    await waitFor("the connection", () => edge.ping().then(() => true));
    ws = aWorkspace();
    await project();
  });
  afterEach(() => edge.close());

  const project = async () => {
    projectionId = aName("prj");
    await edge.writer.begin(projectionId, [ws.workspaceId]);
    await edge.writer.write({ projectionId, version: 1, writes: ws.writes });
    await edge.writer.complete(projectionId, [ws.workspaceId]);
    await beat();
  };
  const beat = async () => edge.writer.heartbeat(projectionId, await edge.writer.nowMs(), [ws.workspaceId]);
  const open = () => openProjection({ source: edge.source, feed: edge.feed, follow: { workspaceId: ws.workspaceId } });
  const aCharge = (): LimitCharge => ({
    workspaceId: "ws_1",
    scope: { kind: "name", value: "writes" },
    identifier: aName("id"),
    limit: 10,
    durationMs: 3_600_000,
    cost: 1,
    accuracy: "strict",
  });

  test("entries are numbered without a gap, on the feed of each workspace and on the central one", async () => {
    const other = aWorkspace();
    const all = [ws, other].map(({ workspaceId, refs }) => {
      const write = (version: number) =>
        edge.writer.write({ projectionId, version, writes: [{ ref: refs.workspace, data: { id: workspaceId, enabled: true } }] });
      return Promise.all(Array.from({ length: 50 }, (_, i) => write(i + 2)));
    });
    await Promise.all([...all, beat(), beat()]);
    for (const feed of [ws.workspaceId, other.workspaceId, "_central"]) {
      const entries = await raw.xrange(keys.changes(feed), "-", "+");
      const ofProjection = entries.map(([, fields]) => fields).filter((fields) => fields[1] === projectionId);
      const numbers = ofProjection.map((fields) => Number(fields[3]));
      expect(numbers).toEqual(numbers.map((_, i) => i));
      expect(numbers.length).toBeGreaterThan(50);
    }
  });

  test("a gap in the change stream drops everything", async () => {
    const listener = new Recording();
    const following = await edge.feed.follow({ workspaceId: ws.workspaceId }, listener);
    await raw.hincrby(keys.mark(ws.workspaceId), "head", 3);
    await edge.writer.write({ projectionId, version: 2, writes: ws.writes.slice(0, 2) });
    await waitFor("both changes", () => listener.told.filter((text) => /^(workspace|api)/.test(text)).length === 2);
    expect(listener.resets()).toEqual([expect.stringMatching(/changes \d+ to \d+ were missed/)]);
    await following.close();
  });

  test("after a lost connection the changes of meanwhile are told, and nothing is dropped", async () => {
    const listener = new Recording();
    const following = await edge.feed.follow({ workspaceId: ws.workspaceId }, listener);
    await raw.client("KILL", "TYPE", "normal", "SKIPME", "yes");
    await waitFor("the connection", () => edge.ping().then(() => true));
    await edge.writer.write({ projectionId, version: 2, writes: ws.writes.slice(-1) });
    await waitFor("the change", () => listener.told.includes(`key ${ws.workspaceId} ${ws.hash}`));
    expect(listener.resets()).toEqual([]);
    await following.close();
  });

  test("an emptied Redis is not usable, then a new projection drops everything, and a writer of the old one is told", async () => {
    const projection = await open();
    expect(await projection.findKey(ws.workspaceId, ws.hash)).toMatchObject({ status: "found" });
    await raw.flushall();
    expect(await edge.source.read([ws.refs.key])).toMatchObject({ usable: false });
    expect(await projection.findKey(ws.workspaceId, "unknown")).toMatchObject({ status: "unusable" });
    expect(await projection.findKey(ws.workspaceId, ws.hash)).toMatchObject({ status: "found" });
    expect((await edge.writer.state()).projectionId).toBeUndefined();
    await expect(beat()).rejects.toBeInstanceOf(ProjectionChanged);
    const reset = new Promise<void>((resolve) => {
      projection.onDropped((ref) => ref === undefined && resolve());
    });
    await project();
    await reset;
    await waitFor("the key", async () => (await projection.findKey(ws.workspaceId, ws.hash)).status === "found");
    await projection.close();
  });

  test("a workspace that has lost its mark is projected anew, not taken for a new one", async () => {
    await raw.del(keys.mark(ws.workspaceId));
    expect(await edge.source.read([ws.refs.key])).toMatchObject({ usable: false });
    await expect(beat()).rejects.toBeInstanceOf(ProjectionChanged);
    const write = { projectionId, version: 2, writes: ws.writes };
    await expect(edge.writer.write(write)).rejects.toBeInstanceOf(ProjectionChanged);
  });

  test("a Redis restarted from an old snapshot is not believed until it is projected anew", async () => {
    const projection = await open();
    await projection.findKey(ws.workspaceId, ws.hash);
    const { runId } = await edge.writer.state();
    await raw.save();
    await edge.writer.write({ projectionId, version: 2, writes: [{ ref: ws.refs.key, data: undefined }] });
    await beat();
    await waitFor("the deletion", async () => (await projection.findKey(ws.workspaceId, ws.hash)).status === "absent");
    await redis.restart({ signal: "SIGKILL" });
    await waitFor("the connection", () => edge.ping().then(() => true));
    expect((await edge.writer.state()).runId).not.toBe(runId);
    expect(await edge.source.read([ws.refs.key])).toMatchObject({ usable: true, records: [{ state: "found" }] });
    await waitFor("the feed to notice", async () => {
      const looked = await projection.findKey(ws.workspaceId, ws.hash);
      return looked.status === "unusable" && looked.reason.includes("back in time");
    });
    await edge.writer.begin("prj_anew", [ws.workspaceId]);
    await edge.writer.write({ projectionId: "prj_anew", version: 3, writes: ws.writes.slice(0, -1) });
    await edge.writer.complete("prj_anew", [ws.workspaceId]);
    await waitFor("the new one", async () => (await projection.findKey(ws.workspaceId, ws.hash)).status === "absent");
    await projection.close();
  });

  test("a projection that is opened while Redis is away begins when it is there", async () => {
    await edge.close();
    const before = redis.pid;
    await redis.kill("SIGKILL");
    edge = await openRedisEdge({ url: redis.url, clientName: "faults" });
    const projection = await open();
    expect(await projection.findKey(ws.workspaceId, ws.hash)).toMatchObject({ status: "unusable" });
    expect(projection.stalenessMs()).toBe(Number.POSITIVE_INFINITY);
    await redis.restart();
    expect(redis.pid).not.toBe(before);
    await waitFor("the connection", () => edge.ping().then(() => true));
    await project();
    await waitFor("the key", async () => (await projection.findKey(ws.workspaceId, ws.hash)).status === "found");
    await waitFor("the heartbeat", () => projection.stalenessMs() < 10_000);
    await edge.writer.write({ projectionId, version: 2, writes: [{ ref: ws.refs.key, data: undefined }] });
    await waitFor("the deletion", async () => (await projection.findKey(ws.workspaceId, ws.hash)).status === "absent");
    await projection.close();
  });

  test("a Redis that does not answer is given up in time, and what was sent is counted once", async () => {
    const counters = edge.counters({ timeoutMs: 50, extraPoll: true });
    const charge = aCharge();
    await counters.consume({ limits: [charge] });
    process.kill(redis.pid, "SIGSTOP");
    try {
      const startedAt = performance.now();
      await expect(counters.consume({ limits: [charge] })).rejects.toBeInstanceOf(CountersUnavailable);
      expect(performance.now() - startedAt).toBeLessThan(1_000);
      expect(await edge.source.read([ws.refs.key])).toMatchObject({ usable: false });
    } finally {
      process.kill(redis.pid, "SIGCONT");
    }
    const { limits } = await waitFor("an answer", () => counters.consume({ limits: [{ ...charge, cost: 0 }] }));
    expect(limits[0]?.remaining).toBe(8);
  });

  test("a consuming call whose connection is lost is not sent again", async () => {
    const counters = edge.counters({ timeoutMs: 5_000 });
    const charge = aCharge();
    await counters.consume({ limits: [charge] });
    process.kill(redis.pid, "SIGSTOP");
    const pending = counters.consume({ limits: [charge] }).then(
      () => "answered",
      (error: unknown) => error,
    );
    process.kill(redis.pid, "SIGCONT");
    await pending;
    await redis.restart({ signal: "SIGKILL" });
    await expect(counters.consume({ limits: [charge] })).rejects.toBeInstanceOf(CountersUnavailable);
    const consumed = await waitFor("an answer", () => counters.consume({ limits: [charge] }));
    // The new server knows nothing of the first two; the one that failed has not arrived there.
    expect(consumed.limits[0]?.remaining).toBe(9);
  });

  test("a server that has forgotten its scripts is told them again", async () => {
    const counters = edge.counters({ timeoutMs: 1_000 });
    await raw.script("FLUSH");
    expect(await counters.consume({ limits: [aCharge()] })).toMatchObject({ passed: true });
    await raw.script("FLUSH");
    await edge.writer.write({ projectionId, version: 4, writes: ws.writes });
    expect(await edge.source.read([ws.refs.key])).toMatchObject({ records: [{ version: 4 }] });
  });

  test("a caller over its limit costs no round trip until it could pass, and a forgotten denial does", async () => {
    const counters = edge.counters({ timeoutMs: 1_000 });
    const charge = { ...aCharge(), limit: 1 };
    await counters.consume({ limits: [charge] });
    const refused = await counters.consume({ limits: [charge] });
    const calls = async () => Number(/cmdstat_evalsha:calls=(\d+)/.exec(await raw.info("commandstats"))?.[1]);
    const before = await calls();
    for (let i = 0; i < 20; i++) {
      const again = await counters.consume({ limits: [charge] });
      expect(again.limits).toEqual(refused.limits);
    }
    expect(await calls()).toBe(before);
    expect((await counters.consume({ limits: [{ ...charge, limit: 2 }] })).passed).toBe(true);
    counters.forgetDenials();
    await counters.consume({ limits: [charge] });
    expect(await calls()).toBe(before + 2);
  });

  test("local limits are exchanged between processes, and what went over is measured", async () => {
    const another = await openRedisEdge({ url: redis.url, clientName: "faults-2" });
    const [first, second] = [edge, another].map((each) => each.counters({ timeoutMs: 1_000 }));
    if (first === undefined || second === undefined) throw new Error("two were made");
    const charge = { ...aCharge(), limit: 100, accuracy: "local" } as const;
    const admit = async (counters: typeof first, times: number) => {
      const consumed = await Promise.all(Array.from({ length: times }, () => counters.consume({ limits: [charge] })));
      return consumed.filter(({ passed }) => passed).length;
    };
    const [a, b] = await Promise.all([admit(first, 80), admit(second, 80)]);
    expect([a, b]).toEqual([80, 80]);
    await waitFor("both to know of both", async () => (await admit(first, 1)) + (await admit(second, 1)) === 0);
    const over = await waitFor("what went over", () => first.overAdmitted() + second.overAdmitted());
    expect(over).toBeGreaterThanOrEqual(60);
    const strict = edge.counters({ timeoutMs: 1_000 });
    expect((await strict.consume({ limits: [{ ...charge, accuracy: "strict" }] })).passed).toBe(false);
    await another.close();
  });

  test("events that a dead reader took are handed out again, and those of a failed handler too", async () => {
    const workspaceId = aName("ws");
    const event = anEvent({ workspaceId });
    edge.sink.add(event);
    await edge.sink.flush();
    const failing = edge.events.take([workspaceId], 10, () => Promise.reject(new Error("no database")));
    await expect(failing).rejects.toThrow("no database");
    const client = connectRedis({ url: redis.url, clientName: "other" });
    await waitFor("the connection", () => client.status === "ready");
    const other = new RedisEventSource(client, { keys, consumer: "other", claimAfterMs: 100 });
    const taken: unknown[] = [];
    await waitFor("the event", () => other.take([workspaceId], 10, async (events) => void taken.push(...events)));
    expect(taken).toEqual([event]);
    expect(await raw.xlen(keys.events(workspaceId))).toBe(0);
    client.disconnect();
  });

  test("what is no event of its workspace is skipped, and does not stop the others", async () => {
    const workspaceId = aName("ws");
    const stream = keys.events(workspaceId);
    await raw.xadd(stream, "*", "e", "not json");
    await raw.xadd(stream, "*", "e", JSON.stringify({ type: "verification", workspaceId: "ws_victim" }));
    await raw.xadd(stream, "*", "other", "1");
    expect(await edge.events.take([workspaceId], 10, async () => {})).toBe(0);
    expect(await raw.xlen(stream)).toBe(0);
  });

  test("events wait while Redis is away, up to a bound, and are counted beyond it", async () => {
    const workspaceId = aName("ws");
    await redis.kill("SIGKILL");
    for (let i = 0; i < 10_050; i++) edge.sink.add(anEvent({ workspaceId }));
    await edge.sink.flush();
    expect(edge.sink.dropped()).toBe(50);
    await redis.restart();
    await waitFor("the connection", () => edge.ping().then(() => true));
    await waitFor("the events", async () => (await raw.xlen(keys.events(workspaceId))) === 10_000);
  });

  test("the eviction policy is told", async () => {
    await raw.config("SET", "maxmemory-policy", "noeviction");
    expect(await edge.info()).toEqual({ evictionPolicy: "noeviction" });
  });
});
