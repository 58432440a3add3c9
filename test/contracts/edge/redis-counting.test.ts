import { Redis } from "ioredis";
import { describe, expect, test } from "vitest";
import type { LimitCharge } from "../../../core/charges.ts";
import { CountersUnavailable } from "../../../edge/counters/contract.ts";
import { openRedisEdge } from "../../../edge/open.ts";
import { openProjection } from "../../../edge/projection/projection.ts";
import { RedisKeys } from "../../../edge/redis/keys.ts";
import { startOwnRedis } from "../../harness/redis.ts";
import { waitFor } from "../../harness/wait.ts";
import { anEvent, takeAll } from "./an-event.ts";
import { aName, openOn } from "./edges.ts";
import { useOwnEdge } from "./own-edge.ts";
import { aWorkspace } from "./projected.ts";

const aCharge = (): LimitCharge => ({
  workspaceId: "ws_1",
  scope: { kind: "name", value: "writes" },
  identifier: aName("id"),
  limit: 10,
  durationMs: 3_600_000,
  cost: 1,
  accuracy: "strict",
});

/** Failures of Redis only, for counters and events: slow, unreachable, without scripts, or rejecting. */
describe("counting and events when Redis fails", () => {
  const own = useOwnEdge();

  test("counter call to a hanging Redis times out and is not counted later", async () => {
    const counters = own.edge.counters({ timeoutMs: 50 });
    const charge = aCharge();
    await counters.consume({ limits: [charge] });
    process.kill(own.redis.pid, "SIGSTOP");
    try {
      const startedAt = performance.now();
      await expect(counters.consume({ limits: [charge] })).rejects.toBeInstanceOf(CountersUnavailable);
      expect(performance.now() - startedAt).toBeLessThan(1_000);
      expect(await own.edge.source.read([own.ws.refs.key])).toMatchObject({ usable: false });
    } finally {
      process.kill(own.redis.pid, "SIGCONT");
    }
    const { limits } = await waitFor("an answer", () => counters.consume({ limits: [{ ...charge, cost: 0 }] }));
    expect(limits[0]?.remaining).toBe(9);
  });

  test("reply that arrives while the process is busy does not mark Redis unavailable", async () => {
    const counters = own.edge.counters({ timeoutMs: 50 });
    const charge = aCharge();
    for (let round = 0; round < 5; round++) {
      const pending = counters.consume({ limits: [charge] });
      const untilMs = performance.now() + 150;
      while (performance.now() < untilMs);
      expect((await pending).passed).toBe(true);
    }
  });

  test("edge with a hanging Redis can be closed", async () => {
    const stuck = await openRedisEdge({ url: own.redis.url, clientName: "stuck" });
    const counters = stuck.counters({ timeoutMs: 50 });
    await counters.consume({ limits: [{ ...aCharge(), accuracy: "local" }] });
    process.kill(own.redis.pid, "SIGSTOP");
    try {
      stuck.sink.add(anEvent());
      const startedAt = performance.now();
      await stuck.close();
      expect(performance.now() - startedAt).toBeLessThan(4_000);
    } finally {
      process.kill(own.redis.pid, "SIGCONT");
    }
  });

  test("counter call is not repeated after a lost connection", async () => {
    const counters = own.edge.counters({ timeoutMs: 5_000 });
    const charge = aCharge();
    await counters.consume({ limits: [charge] });
    process.kill(own.redis.pid, "SIGSTOP");
    const pending = counters.consume({ limits: [charge] }).catch((error: unknown) => error);
    // Kills the stopped process, so that it never replies; the harness would resume it first.
    process.kill(own.redis.pid, "SIGKILL");
    await own.redis.restart();
    expect(await pending).toBeInstanceOf(CountersUnavailable);
    const consumed = await waitFor("an answer", () => counters.consume({ limits: [charge] }));
    // The new server starts empty, and the lost call has not reached it.
    expect(consumed.limits[0]?.remaining).toBe(9);
  });

  test("missing Lua scripts are loaded again", async () => {
    const counters = own.edge.counters({ timeoutMs: 1_000 });
    await own.raw.script("FLUSH");
    expect(await counters.consume({ limits: [aCharge()] })).toMatchObject({ passed: true });
    await own.raw.script("FLUSH");
    await own.edge.writer.write({ projectionId: own.projectionId, version: 4, writes: own.ws.writes });
    expect(await own.edge.source.read([own.ws.refs.key])).toMatchObject({ records: [{ version: 4 }] });
  });

  test("cached denial costs no Redis call until the request could pass or forgetDenials() is called", async () => {
    const counters = own.edge.counters({ timeoutMs: 1_000 });
    const charge = { ...aCharge(), limit: 1 };
    await counters.consume({ limits: [charge] });
    const refused = await counters.consume({ limits: [charge] });
    const calls = async () => Number(/cmdstat_evalsha:calls=(\d+)/.exec(await own.raw.info("commandstats"))?.[1]);
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

  test("strict limits restart at zero after Redis data loss, so the limit is admitted once more", async () => {
    const counters = own.edge.counters({ timeoutMs: 1_000 });
    const charge = { ...aCharge(), limit: 3 };
    const admitted = async () => {
      let passed = 0;
      for (let i = 0; i < 5; i++) passed += Number((await counters.consume({ limits: [charge] })).passed);
      return passed;
    };
    expect(await admitted()).toBe(3);
    await own.raw.flushall();
    counters.forgetDenials();
    expect([await admitted(), await admitted()]).toEqual([3, 0]);
  });

  test("closing the credit counters of all workspaces takes one pass over Redis", async () => {
    const refs = Array.from({ length: 5 }, () => ({ workspaceId: aName("ws"), keyId: aName("key") }));
    await own.edge.credits.load(refs.map((ref) => ({ ref, counter: { rev: 1, granted: 5, spent: 0 } })));
    expect(await own.raw.dbsize()).toBeLessThan(2_000);
    await own.raw.config("RESETSTAT");
    await own.edge.credits.closeAll();
    expect(/cmdstat_scan:calls=(\d+)/.exec(await own.raw.info("commandstats"))?.[1]).toBe("1");
    for (const { workspaceId, keyId } of refs) {
      expect(await own.raw.hget(own.keys.credits(workspaceId, keyId), "open")).toBe("0");
    }
  });

  test("local limits are synchronized between processes, and over-admission is measured", async () => {
    const another = await openRedisEdge({ url: own.redis.url, clientName: "faults-2" });
    const [first, second] = [own.edge, another].map((each) => each.counters({ timeoutMs: 1_000 }));
    if (first === undefined || second === undefined) throw new Error("two were made");
    const charge = { ...aCharge(), limit: 100, accuracy: "local" } as const;
    const admit = async (counters: typeof first, times: number) => {
      const consumed = await Promise.all(Array.from({ length: times }, () => counters.consume({ limits: [charge] })));
      return consumed.filter(({ passed }) => passed).length;
    };
    const [a, b] = await Promise.all([admit(first, 80), admit(second, 80)]);
    expect([a, b]).toEqual([80, 80]);
    await waitFor("both to know of both", async () => (await admit(first, 1)) + (await admit(second, 1)) === 0);
    await waitFor(
      "what went over",
      () => first.overAdmissions().async.units + second.overAdmissions().async.units >= 60,
    );
    const strict = own.edge.counters({ timeoutMs: 1_000 });
    expect((await strict.consume({ limits: [{ ...charge, accuracy: "strict" }] })).passed).toBe(false);
    await another.close();
  });

  test("Redis user of one workspace has exactly the access that a gate needs", async () => {
    const { workspaceId } = own.ws;
    const user = `u${workspaceId}`;
    const may = ["+@read", "+@write", "+@connection", "+@scripting", "+time", "+info"];
    await own.raw.call("ACL", "SETUSER", user, "on", ">secret", `~ps:${workspaceId}:*`, ...may);
    const url = own.redis.url.replace("redis://", `redis://${user}:secret@`);
    const confined = await openRedisEdge({ url, clientName: "confined" });
    const projection = await openProjection({
      source: confined.source,
      stream: confined.stream,
      follow: { workspaceId },
    });
    expect(await projection.findKey(workspaceId, own.ws.hash)).toMatchObject({ status: "found" });
    expect(projection.stalenessMs()).toBeLessThan(10_000);
    await own.edge.credits.load([
      { ref: { workspaceId, keyId: own.ws.keyId }, counter: { rev: 1, granted: 5, spent: 0 } },
    ]);
    const counters = confined.counters({ timeoutMs: 1_000 });
    const limits = [{ ...aCharge(), workspaceId }];
    const credits = { workspaceId, keyId: own.ws.keyId, cost: 1 };
    expect(await counters.consume({ limits, credits })).toMatchObject({ passed: true, credits: { remaining: 4 } });
    await expect(counters.consume({ limits: [aCharge()] })).rejects.toBeInstanceOf(CountersUnavailable);
    const report = { workspaceId, policyId: "pol_1", podId: "pod-1", generation: 1, version: 1, stalenessMs: 0 };
    await confined.pods.report(report);
    expect(await own.edge.pods.list(report)).toHaveLength(1);
    confined.sink.add(anEvent({ workspaceId }));
    await confined.sink.flush();
    expect(await takeAll(own.edge.events, [workspaceId])).toHaveLength(1);
    expect(await confined.source.read([aWorkspace().refs.key])).toMatchObject({ usable: false });
    await projection.close();
    await confined.close();
  });

  test("Redis eviction policy is reported", async () => {
    await own.raw.config("SET", "maxmemory-policy", "noeviction");
    expect(await own.edge.info()).toMatchObject({ evictionPolicy: "noeviction" });
  });
});

test("invalid credit counters in a Redis Cluster are never reported as remaining credits", async () => {
  const redis = await startOwnRedis({ cluster: true, args: ["--cluster-announce-ip", "127.0.0.1"] });
  const raw = new Redis(redis.url);
  const opened = await openOn(`${redis.url}?cluster=true`, "ps", redis.stop);
  try {
    const counters = opened.edge.counters({ timeoutMs: 5_000 });
    const charge = { ...aCharge(), limit: 1 };
    const credits = { workspaceId: "ws_1", keyId: "key_forged", cost: 1 };
    const key = new RedisKeys("ps").credits("ws_1", "key_forged");
    await waitFor("the limit to be full", async () => !(await counters.consume({ limits: [charge] })).passed);
    for (const [granted, spent] of [
      ["x", "0"],
      ["10", "1e400"],
      ["10", "-5"],
      ["10", "0.5"],
      ["9007199254740993", "0"],
    ]) {
      await raw.hset(key, { granted, spent, open: "1" });
      const consumed = await counters.consume({ limits: [charge], credits });
      expect(consumed.credits, `${granted} − ${spent}`).toEqual({ status: "unreached", remaining: undefined });
    }
    await raw.hset(key, { granted: "10", spent: "4", open: "1" });
    expect((await counters.consume({ limits: [charge], credits })).credits).toEqual({
      status: "unreached",
      remaining: 6,
    });
  } finally {
    raw.disconnect();
    await opened.close();
  }
});
