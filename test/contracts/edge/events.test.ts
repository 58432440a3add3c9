import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { UsageEvent } from "../../../edge/events/contract.ts";
import type { Edge } from "../../../edge/open.ts";
import { waitFor } from "../../harness/wait.ts";
import { anEvent } from "./an-event.ts";
import { aName, EDGES, type OpenedEdge } from "./edges.ts";

describe.each(EDGES)("events $name", ({ open }) => {
  let opened: OpenedEdge;
  let edge: Edge;

  beforeAll(async () => {
    opened = await open();
    edge = opened.edge;
  });
  afterAll(() => opened.close());

  const takeAll = async (workspaceIds: string[], from: Edge = edge): Promise<UsageEvent[]> => {
    const taken: UsageEvent[] = [];
    while ((await from.events.take(workspaceIds, 100, async (events) => void taken.push(...events))) > 0);
    return taken;
  };

  test("what was added is taken once, whole, and by workspace", async () => {
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
    expect(await takeAll([workspaceId])).toEqual(events);
    expect(await takeAll([workspaceId])).toEqual([]);
    expect(await takeAll([workspaceId, elsewhere.workspaceId])).toEqual([elsewhere]);
  });

  test("events are sent by themselves within moments", async () => {
    const event = anEvent({ workspaceId: aName("ws") });
    edge.sink.add(event);
    const taken = await waitFor("the event", async () => {
      const events = await takeAll([event.workspaceId]);
      return events.length > 0 && events;
    });
    expect(taken).toEqual([event]);
  });

  test("thousands are taken in portions, none lost and none twice", async () => {
    const workspaceId = aName("ws");
    const events = Array.from({ length: 2_345 }, () => anEvent({ workspaceId }));
    for (const event of events) edge.sink.add(event);
    await edge.sink.flush();
    const another = await opened.openAnother();
    const [first, second] = await Promise.all([takeAll([workspaceId]), takeAll([workspaceId], another)]);
    const ids = [...first, ...second].map(({ id }) => id).sort();
    expect(ids).toEqual(events.map(({ id }) => id).sort());
    expect(edge.sink.dropped()).toBe(0);
  });

  test("a take gives no more than it was asked for", async () => {
    const workspaceIds = [aName("ws"), aName("ws")];
    for (let i = 0; i < 10; i++) edge.sink.add(anEvent({ workspaceId: workspaceIds[i % 2] ?? "" }));
    await edge.sink.flush();
    expect(await edge.events.take(workspaceIds, 7, async () => {})).toBe(7);
    expect(await edge.events.take(workspaceIds, 7, async () => {})).toBe(3);
  });
});
