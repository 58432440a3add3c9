import { afterEach, expect, test } from "vitest";
import { aVerificationEvent } from "../../test/builders/usage-event.ts";
import { waitFor } from "../../test/harness/wait.ts";
import { BufferedSink, type EventBatch, type Sent } from "./buffer.ts";
import type { VerificationEvent } from "./contract.ts";

const anEvent = (changes: Partial<VerificationEvent> = {}): VerificationEvent =>
  aVerificationEvent({ timeMs: 1, workspaceId: "ws_1", spentCredits: 0, latencyMs: 0, ...changes });

/** Returns an event sink that copies batches, because the buffer of a batch is reused after sending. */
function aStore() {
  const stored: VerificationEvent[] = [];
  const store = { stored, isUnavailable: false, isFull: false, calls: 0 };
  const send = async ({ lines, count: expected }: EventBatch): Promise<Sent> => {
    store.calls += 1;
    if (store.isUnavailable) throw new Error("away");
    if (store.isFull) return "refused";
    const events = lines.toString().trimEnd().split("\n");
    expect(events).toHaveLength(expected);
    stored.push(...events.map((line) => JSON.parse(line) as VerificationEvent));
    return "stored";
  };
  return { store, send };
}

let sink: BufferedSink;
afterEach(() => sink.close());

test("event buffer keeps events while Redis is unavailable and sends them once later", async () => {
  const { store, send } = aStore();
  sink = new BufferedSink({ send });
  store.isUnavailable = true;
  const events = [anEvent(), anEvent()];
  for (const event of events) sink.add(event);
  await sink.flush();
  expect(store.stored).toEqual([]);
  store.isUnavailable = false;
  const later = anEvent();
  sink.add(later);
  await sink.flush();
  expect(store.stored).toEqual([...events, later]);
  expect(sink.dropped()).toBe(0);
});

test("event buffer drops and counts events above its limit and at shutdown", async () => {
  const { store, send } = aStore();
  store.isUnavailable = true;
  sink = new BufferedSink({ send, waitingMax: 10 });
  for (let i = 0; i < 15; i++) sink.add(anEvent());
  expect(sink.dropped()).toBe(5);
  await sink.close();
  expect(sink.dropped()).toBe(15);
});

test("event buffer sends many events in few batches, complete and in order", async () => {
  const { store, send } = aStore();
  sink = new BufferedSink({ send });
  const events = Array.from({ length: 3_000 }, (_, i) => anEvent({ externalId: "é".repeat(i % 300) }));
  for (const [i, event] of events.entries()) {
    sink.add(event);
    // The sink replies from time to time, so that buffers are reused.
    if (i % 700 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  await sink.flush();
  await waitFor("all of them", () => store.stored.length === events.length);
  expect(store.stored).toEqual(events);
  expect(store.calls).toBeLessThan(60);
});

test("event buffer sends an oversized event in its own batch", async () => {
  const { store, send } = aStore();
  sink = new BufferedSink({ send });
  const events = [anEvent(), anEvent({ externalId: "x".repeat(500_000) }), anEvent()];
  for (const event of events) sink.add(event);
  await sink.flush();
  expect(store.stored).toEqual(events);
});

test("event buffer drops and counts events that exceed the Redis budget without a retry", async () => {
  const { store, send } = aStore();
  sink = new BufferedSink({ send });
  store.isFull = true;
  for (let i = 0; i < 10; i++) sink.add(anEvent());
  await sink.flush();
  expect(sink.dropped()).toBe(10);
  store.isFull = false;
  const later = anEvent();
  sink.add(later);
  await sink.flush();
  expect(store.stored).toEqual([later]);
  expect(sink.dropped()).toBe(10);
});

test("event buffer reserves space so that one flooding workspace cannot displace others", async () => {
  const { store, send } = aStore();
  store.isUnavailable = true;
  sink = new BufferedSink({ send, waitingMax: 1_000 });
  for (let i = 0; i < 3_000; i++) sink.add(anEvent({ workspaceId: "ws_flooding" }));
  const others = Array.from({ length: 300 }, (_, i) => anEvent({ workspaceId: `ws_${i % 3}` }));
  for (const event of others) sink.add(event);
  for (let i = 0; i < 3_000; i++) sink.add(anEvent({ workspaceId: "ws_flooding" }));
  await sink.flush();
  store.isUnavailable = false;
  await sink.flush();
  const stored = new Set(store.stored.map(({ id }) => id));
  expect(others.filter(({ id }) => stored.has(id))).toHaveLength(300);
  expect(stored.size + sink.dropped()).toBe(6_300);
  expect(stored.size).toBeGreaterThan(500);
});
