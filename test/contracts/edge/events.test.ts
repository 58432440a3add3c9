import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { UsageEvent } from "../../../edge/events/contract.ts";
import type { Edge } from "../../../edge/open.ts";
import { waitFor } from "../../harness/wait.ts";
import { anEvent, takeAll } from "./an-event.ts";
import { aName, EDGES, type OpenedEdge } from "./edges.ts";

describe.each(EDGES)("events $name", ({ open }) => {
  let opened: OpenedEdge;
  let edge: Edge;

  beforeAll(async () => {
    opened = await open();
    edge = opened.edge;
  });
  afterAll(() => opened.close());

  test("event stream delivers events once, unchanged and by workspace", async () => {
    const workspaceId = aName("ws");
    const ratelimit: UsageEvent = {
      type: "ratelimit",
      id: aName("ev"),
      requestId: "req_2",
      timeMs: 5,
      workspaceId,
      namespaceId: "rlns_1",
      identifier: "päth/1",
      passed: false,
      latencyMs: 2,
      limit: 1,
      remaining: 0,
      resetMs: 60_000,
      cost: 1,
    };
    const events = [anEvent({ workspaceId }), anEvent({ workspaceId, externalId: "alice" }), ratelimit];
    const elsewhere = anEvent({ workspaceId: aName("ws") });
    for (const event of [...events, elsewhere]) edge.sink.add(event);
    await edge.sink.flush();
    expect(await takeAll(edge.events, [workspaceId])).toEqual(events);
    expect(await takeAll(edge.events, [workspaceId])).toEqual([]);
    expect(await takeAll(edge.events, [workspaceId, elsewhere.workspaceId])).toEqual([elsewhere]);
  });

  test("event stream sends events within a short time without a flush", async () => {
    const event = anEvent({ workspaceId: aName("ws") });
    edge.sink.add(event);
    const taken = await waitFor("the event", async () => {
      const events = await takeAll(edge.events, [event.workspaceId]);
      return events.length > 0 && events;
    });
    expect(taken).toEqual([event]);
  });

  test("event stream delivers thousands of events in batches without loss or duplicates", async () => {
    const workspaceId = aName("ws");
    await edge.events.keepWithin([workspaceId], 64 * 1024 * 1024);
    const events = Array.from({ length: 2_345 }, () => anEvent({ workspaceId }));
    for (const event of events) edge.sink.add(event);
    await edge.sink.flush();
    const another = await opened.openAnother();
    const [first, second] = await Promise.all([
      takeAll(edge.events, [workspaceId]),
      takeAll(another.events, [workspaceId]),
    ]);
    const ids = [...first, ...second].map(({ id }) => id).sort();
    expect(ids).toEqual(events.map(({ id }) => id).sort());
    expect(edge.sink.dropped()).toBe(0);
  });

  test("second reader of an event stream gets other batches while the first reader processes its batch", async () => {
    const workspaceId = aName("ws");
    await edge.events.keepWithin([workspaceId], 64 * 1024 * 1024);
    const added = Array.from({ length: 4_000 }, () => anEvent({ workspaceId }).id);
    for (const id of added) edge.sink.add(anEvent({ workspaceId, id }));
    await edge.sink.flush();
    const another = edge.anotherReader();
    const meanwhile: string[] = [];
    const first: string[] = [];
    await edge.events.take(workspaceId, async (events) => {
      first.push(...[...events].map(({ id }) => id));
      const failed = another.take(workspaceId, () => Promise.reject(new Error("no database")));
      await expect(failed).rejects.toThrow("no database");
      await another.take(workspaceId, async (others) => void meanwhile.push(...[...others].map(({ id }) => id)));
    });
    expect([first.length > 0, meanwhile.length > 0]).toEqual([true, true]);
    const rest = (await takeAll(another, [workspaceId])).map(({ id }) => id);
    expect([...first, ...meanwhile, ...rest].sort()).toEqual(added.sort());
  });

  test("event source measure() reports the depth, capacity and age of each stream", async () => {
    const [full, empty] = [aName("ws"), aName("ws")];
    const TOTAL = 1024 * 1024;
    await edge.events.keepWithin([full, empty], TOTAL);
    const addTen = async () => {
      for (let i = 0; i < 10; i++) edge.sink.add(anEvent({ workspaceId: full }));
      await edge.sink.flush();
      return edge.events.measure([full]);
    };
    await addTen();
    const seen = await waitFor("it to grow old", async () => {
      const look = await edge.events.measure([empty, full]);
      return (look.depths[0]?.ageMs ?? 0) >= 50 && look;
    });
    expect(seen).toMatchObject({ depths: [{ workspaceId: full }], setAside: [], failed: [] });
    expect(seen.depths[0]?.entries).toBeGreaterThan(0);
    expect(seen.depths[0]?.bytes).toBeGreaterThan(1000);
    expect(seen.depths[0]?.ageMs).toBeLessThan(60_000);
    const [before = 0, after = 0] = [seen.depths[0]?.capacityBytes, (await addTen()).depths[0]?.capacityBytes];
    expect(before).toBeLessThan(TOTAL);
    expect(after).toBeGreaterThan(0);
    expect(before - after).toBeGreaterThan(1000);
    expect(await takeAll(edge.events, [full])).toHaveLength(20);
    expect((await edge.events.measure([empty, full])).depths).toEqual([]);
  });

  test("failed event batch is redelivered immediately without delaying other workspaces", async () => {
    const [refused, other] = [aName("ws"), aName("ws")];
    const events = [anEvent({ workspaceId: refused }), anEvent({ workspaceId: refused })];
    const elsewhere = anEvent({ workspaceId: other });
    for (const event of [...events, elsewhere]) edge.sink.add(event);
    await edge.sink.flush();
    const failing = edge.events.take(refused, () => Promise.reject(new Error("no")));
    await expect(failing).rejects.toThrow("no");
    expect(await takeAll(edge.events, [other])).toEqual([elsewhere]);
    const later = anEvent({ workspaceId: refused });
    edge.sink.add(later);
    await edge.sink.flush();
    expect(await takeAll(edge.events, [refused])).toEqual([...events, later]);
  });

  test("failed event batch is redelivered with the same events and id", async () => {
    const workspaceId = aName("ws");
    await edge.events.keepWithin([workspaceId], 64 * 1024 * 1024);
    const add = async (count: number) => {
      const events = Array.from({ length: count }, () => anEvent({ workspaceId }));
      for (const event of events) edge.sink.add(event);
      await edge.sink.flush();
      return events.map(({ id }) => id);
    };
    const early = await add(1_500);
    const deliveries: { batchId: string; ids: string[] }[] = [];
    const take = (fails: boolean, bytesEnough?: number) =>
      edge.events.take(
        workspaceId,
        async (events) => {
          deliveries.push({ batchId: events.batchId, ids: [...events].map(({ id }) => id) });
          if (fails) throw new Error("no");
        },
        { bytesEnough },
      );
    await expect(take(true, 100_000)).rejects.toThrow("no");
    const late = await add(300);
    // The next delivery has another bound, as after a change of the store.
    await expect(take(true, 1_000)).rejects.toThrow("no");
    await take(false);
    const [first, second, third] = deliveries;
    expect(first?.ids.length).toBeGreaterThan(100);
    expect(first?.ids.length).toBeLessThan(1_500);
    expect(second).toEqual(first);
    expect(third).toEqual(first);
    while ((await take(false)).entries > 0);
    const rest = deliveries.slice(3).flatMap(({ ids }) => ids);
    expect([...(first?.ids ?? []), ...rest].sort()).toEqual([...early, ...late].sort());
    expect(new Set(deliveries.map(({ batchId }) => batchId)).size).toBe(deliveries.length - 2);
  });

  test("events above the budget of a workspace are dropped and counted without affecting other workspaces", async () => {
    const [flooding, quiet] = [aName("ws"), aName("ws")];
    await edge.events.keepWithin([flooding, quiet], 1024 * 1024);
    const another = await opened.openAnother();
    const droppedBefore = another.sink.dropped();
    for (let i = 0; i < 6_000; i++) {
      another.sink.add(anEvent({ workspaceId: flooding }));
      if (i % 500 === 499) await another.sink.flush();
    }
    const dropped = another.sink.dropped() - droppedBefore;
    expect(dropped).toBeGreaterThan(2_000);
    const event = anEvent({ workspaceId: quiet });
    another.sink.add(event);
    await another.sink.flush();
    expect(await takeAll(edge.events, [quiet])).toEqual([event]);
    const { depths } = await edge.events.measure([flooding]);
    expect(depths[0]?.bytes).toBeLessThan(1024 * 1024);
    expect(await takeAll(edge.events, [flooding])).toHaveLength(6_000 - dropped);
    // Reading events has freed space.
    another.sink.add(anEvent({ workspaceId: flooding }));
    await another.sink.flush();
    expect(await takeAll(edge.events, [flooding])).toHaveLength(1);
  });
});
