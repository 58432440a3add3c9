import { describe, expect, test } from "vitest";
import { RedisEventSource } from "../../../edge/events/redis-source.ts";
import { connectRedis } from "../../../edge/redis/connect.ts";
import { waitFor } from "../../harness/wait.ts";
import { anEvent } from "./an-event.ts";
import { aName } from "./edges.ts";
import { useOwnEdge } from "./own-edge.ts";

describe("events over a Redis that others write to, and that goes away", () => {
  const own = useOwnEdge();

  test("events that a dead reader took are handed out again, and those of a failed handler too", async () => {
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

  test("what is no event of its workspace is skipped, and does not stop the others", async () => {
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

  test("events wait while Redis is away, up to a bound, and are counted beyond it", async () => {
    const workspaceId = aName("ws");
    await own.redis.kill("SIGKILL");
    for (let i = 0; i < 10_050; i++) own.edge.sink.add(anEvent({ workspaceId }));
    await own.edge.sink.flush();
    expect(own.edge.sink.dropped()).toBe(50);
    await own.redis.restart();
    await own.connected();
    await waitFor("the events", async () => (await own.raw.xlen(own.keys.events(workspaceId))) === 10_000);
  });
});
