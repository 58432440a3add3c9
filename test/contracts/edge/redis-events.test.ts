import type { Command } from "ioredis";
import { describe, expect, test } from "vitest";
import { EventsUnavailable } from "../../../edge/events/contract.ts";
import { RedisEventSource } from "../../../edge/events/redis-source.ts";
import { openRedisEdge } from "../../../edge/open.ts";
import { connectRedis, keySlot } from "../../../edge/redis/connect.ts";
import { RedisKeys } from "../../../edge/redis/keys.ts";
import { waitFor } from "../../harness/wait.ts";
import { anEvent, takeAll } from "./an-event.ts";
import { aName } from "./edges.ts";
import { useOwnEdge } from "./own-edge.ts";

describe("event streams in a hostile or unreachable Redis", () => {
  const own = useOwnEdge();

  test("events of crashed readers and failed handlers are redelivered", async () => {
    const workspaceId = aName("ws");
    const event = anEvent({ workspaceId });
    own.edge.sink.add(event);
    await own.edge.sink.flush();
    const failing = own.edge.events.take(workspaceId, () => Promise.reject(new Error("no database")));
    await expect(failing).rejects.toThrow("no database");
    const client = connectRedis({ url: own.redis.url, clientName: "other" });
    await waitFor("the connection", () => client.status === "ready");
    const other = new RedisEventSource(client, { keys: own.keys, consumer: "other", claimAfterMs: 100 });
    const taken: unknown[] = [];
    const take = () => other.take(workspaceId, async (events) => void taken.push(...events));
    await waitFor("the event", async () => (await take()).entries > 0);
    expect(taken).toEqual([event]);
    expect(await own.raw.xlen(own.keys.events(workspaceId))).toBe(0);
    client.disconnect();
  });

  test("pending events of crashed readers are claimed in the same batches as before", async () => {
    const workspaceId = aName("ws");
    const client = connectRedis({ url: own.redis.url, clientName: "other" });
    await waitFor("the connection", () => client.status === "ready");
    const open = (consumer: string) => new RedisEventSource(client, { keys: own.keys, consumer, claimAfterMs: 200 });
    const deliveries = new Map<string, string[][]>();
    const take = async (reader: RedisEventSource, fails: boolean) => {
      const { entries } = await reader
        .take(workspaceId, async (events) => {
          const ids = [...events].map(({ id }) => id);
          deliveries.set(events.batchId, [...(deliveries.get(events.batchId) ?? []), ids]);
          if (fails) throw new Error("dies");
        })
        .catch(() => ({ entries: 1 }));
      return entries > 0;
    };
    // Each of three readers takes two entries and crashes; two more entries are unread.
    const stream = own.keys.events(workspaceId);
    const add = () => own.raw.xadd(stream, "*", "e", JSON.stringify(anEvent({ workspaceId })));
    for (const name of ["a", "b", "c"]) {
      for (let i = 0; i < 2; i++) await add();
      await take(open(name), true);
    }
    expect(deliveries.size).toBe(3);
    const heir = open("heir");
    for (let i = 0; i < 2; i++) await add();
    await waitFor("all of it", async () => {
      await take(heir, false);
      return (await own.raw.xlen(stream)) === 0;
    });
    expect(deliveries.size).toBe(4);
    const seen = [...deliveries.values()];
    for (const times of seen) expect(new Set(times.map(String)).size).toBe(1);
    expect(seen.map((times) => times[0]?.length)).toEqual([2, 2, 2, 2]);
    expect(seen.map((times) => times.length).sort()).toEqual([1, 2, 2, 2]);
    client.disconnect();
  });

  test("batch whose reply was lost is read again before later batches", async () => {
    const workspaceId = aName("ws");
    const stream = own.keys.events(workspaceId);
    const client = connectRedis({ url: own.redis.url, clientName: "lossy" });
    await waitFor("the connection", () => client.status === "ready");
    const reader = new RedisEventSource(client, { keys: own.keys, consumer: "lossy", claimAfterMs: 60_000 });
    const add = async (id: string) => {
      await own.raw.xadd(stream, "*", "e", JSON.stringify(anEvent({ workspaceId, id })));
    };
    await add("ev_before");
    await takeAll(reader, [workspaceId]);
    await add("ev_lost");
    // The script runs, but its reply is lost.
    const sendCommand = client.sendCommand.bind(client);
    client.sendCommand = (command: Command) =>
      Promise.resolve(sendCommand(command)).then(() => Promise.reject(new Error("Connection is closed.")));
    await expect(takeAll(reader, [workspaceId])).rejects.toThrow(EventsUnavailable);
    client.sendCommand = sendCommand;
    await add("ev_later");
    const portions: string[][] = [];
    const take = () => reader.take(workspaceId, async (events) => void portions.push([...events].map(({ id }) => id)));
    while ((await take()).entries > 0);
    expect(portions).toEqual([["ev_lost"], ["ev_later"]]);
    client.disconnect();
  });

  test("entry that is not an event of its workspace is skipped", async () => {
    const workspaceId = aName("ws");
    const stream = own.keys.events(workspaceId);
    await own.raw.xadd(stream, "*", "e", "not json");
    await own.raw.xadd(stream, "*", "e", JSON.stringify({ type: "verification", workspaceId: "ws_victim" }));
    await own.raw.xadd(stream, "*", "other", "1");
    const good = anEvent({ workspaceId });
    await own.raw.xadd(stream, "*", "e", JSON.stringify(good));
    const portions: { unreadable: number }[] = [];
    const taken: unknown[] = [];
    const store = async (events: Iterable<unknown>) => void taken.push(...events);
    portions.push(await own.edge.events.take(workspaceId, store));
    expect(taken).toEqual([good]);
    expect(portions).toEqual([{ entries: 4, unreadable: 1 }]);
    expect(await own.raw.xlen(stream)).toBe(0);
  });

  test("events are buffered during a Redis outage and dropped and counted above the limit", async () => {
    const workspaceId = aName("ws");
    await own.redis.kill("SIGKILL");
    for (let i = 0; i < 10_050; i++) own.edge.sink.add(anEvent({ workspaceId }));
    await own.edge.sink.flush();
    expect(own.edge.sink.dropped()).toBe(50);
    await own.redis.restart();
    await own.connected();
    const room = await waitFor("room", () => own.edge.events.keepWithin([workspaceId], 64 * 1024 * 1024));
    expect(room).toEqual({ totalBytes: 64 * 1024 * 1024, trimmed: 0 });
    await own.edge.sink.flush();
    const taken = await takeAll(own.edge.events, [workspaceId]);
    // Some events may have been sent and rejected before space was available.
    expect(taken.length + own.edge.sink.dropped()).toBe(10_050);
    expect(taken.length).toBeGreaterThan(0);
  });

  test.each([
    { size: "a small batch", count: 1, entries: 1 },
    { size: "a batch that no script is given", count: 60, entries: 2 },
  ])("$size is charged to the event budget by its bytes, or is dropped and counted", async ({ count, entries }) => {
    const workspaceId = aName("ws");
    const [stream, room] = [own.keys.events(workspaceId), own.keys.eventsQuota(workspaceId)];
    const add = async () => {
      const dropped = own.edge.sink.dropped();
      for (let i = 0; i < count; i++) own.edge.sink.add(anEvent({ workspaceId }));
      await own.edge.sink.flush();
      return own.edge.sink.dropped() - dropped;
    };
    await own.raw.set(room, "1000000");
    expect(await add()).toBe(0);
    expect(await own.raw.xlen(stream)).toBe(entries);
    const bytes = (await own.raw.xrange(stream, "-", "+")).map(([, [, lines = ""]]) => lines.length);
    const cost = bytes.reduce((sum, each) => sum + Math.ceil(1.25 * each) + 512, 0);
    expect(Number(await own.raw.get(room))).toBe(1_000_000 - cost);

    for (const none of ["200", "-5"]) {
      await own.raw.set(room, none);
      expect((await own.edge.events.measure([workspaceId])).depths).toMatchObject([{ capacityBytes: Number(none) }]);
      expect(await add()).toBe(count);
      expect(await own.raw.get(room)).toBe(none);
    }
    expect(await own.raw.xlen(stream)).toBe(entries);
    // An invalid number is replaced by the initial budget of a new workspace.
    for (const write of [() => own.raw.set(room, "nan"), () => own.raw.lpush(room, "1")]) {
      await own.raw.del(room);
      await write();
      expect((await own.edge.events.measure([workspaceId])).depths).toMatchObject([{ capacityBytes: 0 }]);
      expect(await add()).toBe(0);
      expect(Number(await own.raw.get(room))).toBeGreaterThan(0);
    }
    expect(await takeAll(own.edge.events, [workspaceId])).toHaveLength(3 * count);
  });

  test("closed and killed readers leave the consumer group unless they hold entries", async () => {
    const workspaceId = aName("ws");
    const stream = own.keys.events(workspaceId);
    const readers = async () => ((await own.raw.xinfo("CONSUMERS", stream, "ingest")) as unknown[]).length;
    const add = async () => {
      own.edge.sink.add(anEvent({ workspaceId }));
      await own.edge.sink.flush();
    };
    for (let start = 0; start < 5; start++) {
      await add();
      const edge = await openRedisEdge({ url: own.redis.url, clientName: "reader" });
      expect(await takeAll(edge.events, [workspaceId])).toHaveLength(1);
      expect(await readers()).toBe(1);
      await edge.close();
      expect(await readers()).toBe(0);
    }
    const client = connectRedis({ url: own.redis.url, clientName: "other" });
    await waitFor("the connection", () => client.status === "ready");
    const open = (consumer: string) => new RedisEventSource(client, { keys: own.keys, consumer, claimAfterMs: 100 });
    await add();
    const killed = open("killed");
    await killed.take(workspaceId, () => Promise.reject(new Error("no"))).catch(() => undefined);
    await open("left").close();
    await killed.close();
    expect(await readers()).toBe(1);
    const living = open("living");
    await waitFor("the killed one's to be taken", async () => (await takeAll(living, [workspaceId])).length === 1);
    await waitFor("the killed one to be removed", async () => {
      await add();
      await takeAll(living, [workspaceId]);
      return (await readers()) === 1;
    });
    client.disconnect();
  });

  test("one process at a time distributes the event budget, with failover", async () => {
    const workspaceId = aName("ws");
    const other = await openRedisEdge({ url: own.redis.url, clientName: "other" });
    expect(await own.edge.events.keepWithin([workspaceId], 1_000_000)).toBeDefined();
    expect(await other.events.keepWithin([workspaceId], 1_000_000)).toBeUndefined();
    expect(await own.edge.events.keepWithin([workspaceId], 1_000_000)).toBeDefined();
    expect(await own.raw.pttl(own.keys.eventsKeeper())).toBeGreaterThan(1_000);
    await own.raw.del(own.keys.eventsKeeper());
    expect(await other.events.keepWithin([workspaceId], 1_000_000)).toBeDefined();
    await other.close();
  });

  test("stream above its budget is trimmed, and an invalid budget is replaced", async () => {
    const [honest, hostile] = [aName("ws"), aName("ws")];
    const TOTAL = 4 * 1024 * 1024;
    const keep = () => own.edge.events.keepWithin([honest, hostile], TOTAL);
    await keep();
    const before = Number(await own.raw.get(own.keys.eventsQuota(honest)));
    for (const forged of [() => own.raw.set(own.keys.eventsQuota(hostile), "9".repeat(15)), () => makeList(hostile)]) {
      await own.raw.del(own.keys.eventsQuota(hostile));
      await forged();
      for (let i = 0; i < 300; i++) await own.raw.xadd(own.keys.events(hostile), "*", "e", "x".repeat(30_000));
      await own.edge.events.measure([honest, hostile]);
      expect((await keep())?.trimmed).toBeGreaterThan(100);
      await own.edge.events.measure([honest, hostile]);
      await keep();
      expect(Number(await own.raw.call("MEMORY", "USAGE", own.keys.events(hostile), "SAMPLES", "0"))).toBeLessThan(
        TOTAL,
      );
      expect(Number(await own.raw.get(own.keys.eventsQuota(hostile)))).toBeLessThan(TOTAL);
      expect(Number(await own.raw.get(own.keys.eventsQuota(honest)))).toBe(before);
    }
    own.edge.sink.add(anEvent({ workspaceId: honest }));
    await own.edge.sink.flush();
    expect(own.edge.sink.dropped()).toBe(0);
  });

  test("large stream key of another type does not affect the event budget of other workspaces", async () => {
    const [honest, hostile] = [aName("ws"), aName("ws")];
    await own.raw.set(own.keys.events(hostile), "x".repeat(8 * 1024 * 1024));
    for (let i = 0; i < 100; i++) await own.raw.xadd(own.keys.events(honest), "*", "e", "x".repeat(30_000));
    await own.edge.events.keepWithin([hostile, honest], 8 * 1024 * 1024);
    expect(await own.raw.exists(own.keys.events(hostile))).toBe(0);
    expect(await own.raw.xlen(own.keys.events(honest))).toBe(100);
    expect(Number(await own.raw.get(own.keys.eventsQuota(honest)))).toBeGreaterThan(0);
  });

  const makeList = (workspaceId: string) => own.raw.lpush(own.keys.eventsQuota(workspaceId), "1");

  test("event budget key is in the slot of its stream", () => {
    for (const keys of [new RedisKeys(), new RedisKeys("a:b")]) {
      expect(keySlot(keys.eventsQuota("ws_1"))).toBe(keySlot(keys.events("ws_1")));
    }
  });
});
