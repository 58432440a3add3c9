import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { sharedBy } from "../../edge/concurrency-limiter.ts";
import { ConnectionLimiter, type LimitAction, type LimitedConnection } from "./connection-limiter.ts";

/* Which connection a full server evicts, and which one it rejects. */

interface Client extends LimitedConnection {
  idleSinceMs: number | undefined;
  isClosed: boolean;
  looks: number;
}

let limitReached: LimitAction[] = [];
beforeEach(() => {
  limitReached = [];
  vi.useFakeTimers({ toFake: ["performance"] });
});
afterEach(() => vi.useRealTimers());

const openLimiter = (max: number, share = 1): ConnectionLimiter =>
  new ConnectionLimiter({ max, mayAcquire: sharedBy(share), onLimitReached: (done) => limitReached.push(done) });

/** Returns a connection that is idle since `idle`; "busy" has a request in flight. */
function clientOf(idle: number | "busy"): Client {
  let since = idle === "busy" ? undefined : idle;
  return {
    isClosed: false,
    looks: 0,
    get idleSinceMs() {
      this.looks += 1;
      return since;
    },
    set idleSinceMs(ms) {
      since = ms;
    },
    evict() {
      this.isClosed = true;
    },
  };
}

/** Returns `undefined` when the connection was rejected. */
function come(room: ConnectionLimiter, idle: number | "busy", address?: string): Client | undefined {
  // Longer than the pause after a scan of so few connections.
  vi.advanceTimersByTime(10);
  if (!room.admit(address)) return undefined;
  const client = clientOf(idle);
  room.enter(client, address);
  return client;
}

const closedOf = (clients: ReadonlyArray<Client | undefined>): number[] =>
  clients.flatMap((client, i) => (client?.isClosed === true ? [i] : []));

test("ConnectionLimiter checks no connection for idleness while it is below capacity", () => {
  const room = openLimiter(3);
  const all = [come(room, 1), come(room, 2), come(room, 3)];
  expect([room.size, all.map((client) => client?.looks), limitReached]).toEqual([3, [0, 0, 0], []]);
});

test("ConnectionLimiter evicts the longest idle connection and keeps busy ones", () => {
  const room = openLimiter(4);
  const all = [come(room, 30), come(room, "busy"), come(room, 10), come(room, 20)];
  const later = [come(room, 40), come(room, 50)];
  expect([closedOf(all), closedOf(later), room.size]).toEqual([[2, 3], [], 4]);
  expect(limitReached).toEqual(["evicted", "evicted"]);
});

test("ConnectionLimiter rejects connections while none is idle, until one closes", () => {
  const room = openLimiter(2);
  const [first] = [come(room, "busy"), come(room, "busy")];
  expect([come(room, 1), room.size, limitReached]).toEqual([undefined, 2, ["rejected"]]);
  if (first !== undefined) room.leave(first);
  expect([come(room, "busy")?.isClosed, room.size]).toEqual([false, 2]);
});

test("ConnectionLimiter does not evict a connection that was used or became idle again since its check", () => {
  const room = openLimiter(1_000);
  const all = Array.from({ length: 1_000 }, (_, i) => come(room, i));
  // One scan finds all of them, and the next connections arrive before another scan.
  vi.advanceTimersByTime(10);
  expect(room.admit(undefined)).toBe(true);
  expect(closedOf(all)).toEqual([0]);
  (all[1] as Client).idleSinceMs = undefined;
  (all[2] as Client).idleSinceMs = 5_000;
  room.enter(clientOf(6_000), undefined);
  expect(room.admit(undefined)).toBe(true);
  expect(closedOf(all)).toEqual([0, 3]);
});

test("ConnectionLimiter evicts connections of an address that exceeds its own share", () => {
  const room = openLimiter(10, 0.5);
  const other = [come(room, 1, "b")];
  const greedy = Array.from({ length: 12 }, (_, i) => come(room, 100 + i, "a"));
  expect(closedOf(other)).toEqual([]);
  expect([closedOf(greedy), room.size]).toEqual([[0, 1, 2, 3, 4, 5, 6], 6]);
});

test("ConnectionLimiter rejects an address whose connections are all busy, but no other address", () => {
  const room = openLimiter(10, 0.5);
  const greedy = Array.from({ length: 10 }, () => come(room, "busy", "a"));
  expect(greedy.filter((client) => client !== undefined)).toHaveLength(5);
  expect(limitReached).toEqual(Array.from({ length: 5 }, () => "rejected"));
  expect(come(room, "busy", "b")).toBeDefined();
});

test("idle connections of other addresses do not reduce an address's share in ConnectionLimiter", () => {
  const room = openLimiter(10, 0.5);
  for (let i = 0; i < 10; i++) come(room, i, `held by ${i}`);
  const gateway = Array.from({ length: 5 }, () => come(room, "busy", "gateway"));
  expect(gateway.every((client) => client !== undefined)).toBe(true);
  expect([come(room, "busy", "gateway"), room.size]).toEqual([undefined, 10]);
});

test("ConnectionLimiter lets exempt connections use the total capacity", () => {
  const room = openLimiter(4, 0.5);
  const proxy = Array.from({ length: 4 }, (_, i) => come(room, i, undefined));
  expect(proxy.every((client) => client !== undefined)).toBe(true);
  expect([come(room, "busy", "a") !== undefined, closedOf(proxy)]).toEqual([true, [0]]);
});

test("ConnectionLimiter passes the slot of a replaced connection to its successor and releases it only once", () => {
  const room = openLimiter(2, 0.5);
  const handshake = clientOf(1);
  const served = clientOf("busy");
  room.enter(handshake, "a");
  room.replace(handshake, served);
  room.leave(handshake);
  expect([room.size, room.admit("a")]).toEqual([1, false]);
  room.leave(served);
  room.leave(served);
  expect([room.size, room.admit("a")]).toEqual([0, true]);
});

test("ConnectionLimiter limits idle checks when all connections are busy", () => {
  const room = openLimiter(10_000);
  const all = Array.from({ length: 10_000 }, () => clientOf("busy"));
  for (const client of all) room.enter(client, "a");
  for (let i = 0; i < 1_000; i++) {
    expect(room.admit("b")).toBe(false);
    vi.advanceTimersByTime(1);
  }
  expect(all[0]?.looks).toBeGreaterThan(5);
  expect(all[0]?.looks).toBeLessThanOrEqual(20);
});
