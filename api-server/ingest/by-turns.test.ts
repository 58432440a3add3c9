import { expect, test } from "vitest";
import type { EventSource } from "../../edge/events/contract.ts";
import { MemoryEventStream } from "../../edge/events/memory.ts";
import { anEvent } from "../../test/contracts/edge/an-event.ts";
import { takeByTurns } from "./by-turns.ts";

const WORKSPACES = ["ws_a", "ws_b", "ws_c"];
const MAX = 2;

function append(stream: MemoryEventStream, workspaceId: string, count: number): void {
  for (let i = 0; i < count; i++) {
    const lines = Buffer.from(`${JSON.stringify(anEvent({ workspaceId }))}\n`);
    stream.append({ workspaceId, lines, count: 1 });
  }
}

/** By workspace: how many events one call gives. */
async function takeOnce(source: EventSource, workspaceIds = WORKSPACES): Promise<Record<string, number>> {
  const taken: Record<string, number> = {};
  await source.take(workspaceIds, MAX, async (events) => {
    taken[events.workspaceId] = [...events].length;
  });
  return taken;
}

test("workspaces that have more than a call may take, each time, keep no other one waiting", async () => {
  const stream = new MemoryEventStream();
  const source = takeByTurns(stream);
  append(stream, "ws_a", 5);
  append(stream, "ws_b", 5);
  append(stream, "ws_c", 1);
  expect(await takeOnce(source)).toEqual({ ws_a: 2 });
  expect(await takeOnce(source)).toEqual({ ws_b: 2 });
  expect(await takeOnce(source)).toEqual({ ws_c: 1, ws_a: 1 });
  expect(await takeOnce(source)).toEqual({ ws_b: 2 });
  expect(await takeOnce(source)).toEqual({ ws_a: 2 });
  expect(await takeOnce(source)).toEqual({ ws_b: 1 });
  expect(await takeOnce(source)).toEqual({});
});

test("one whose events cannot be handled keeps no other one waiting", async () => {
  const stream = new MemoryEventStream();
  const source = takeByTurns(stream);
  append(stream, "ws_a", MAX);
  append(stream, "ws_b", 1);
  await expect(source.take(WORKSPACES, MAX, () => Promise.reject(new Error("no")))).rejects.toThrow("no");
  expect(await takeOnce(source)).toEqual({ ws_b: 1, ws_a: 1 });
});

test("a workspace that is gone since its turn leaves nobody out", async () => {
  const stream = new MemoryEventStream();
  const source = takeByTurns(stream);
  append(stream, "ws_b", 2);
  expect(await takeOnce(source)).toEqual({ ws_b: 2 });
  append(stream, "ws_a", 1);
  append(stream, "ws_c", 1);
  expect(await takeOnce(source, ["ws_a", "ws_c"])).toEqual({ ws_a: 1, ws_c: 1 });
});
