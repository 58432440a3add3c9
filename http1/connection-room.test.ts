import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { sharedBy } from "../edge/places.ts";
import { ConnectionRoom, type Crowded, type Guest } from "./connection-room.ts";

/* Whom a crowded server closes, and whom it refuses. */

interface Client extends Guest {
  idleSinceMs: number | undefined;
  isClosed: boolean;
  looks: number;
}

let crowded: Crowded[] = [];
beforeEach(() => {
  crowded = [];
  vi.useFakeTimers({ toFake: ["performance"] });
});
afterEach(() => vi.useRealTimers());

const openRoom = (max: number, share = 1): ConnectionRoom =>
  new ConnectionRoom({ max, mayHold: sharedBy(share), onCrowded: (done) => crowded.push(done) });

/** A connection that is idle since then; "busy" has a request under way. */
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
    makeRoom() {
      this.isClosed = true;
    },
  };
}

/** Returns undefined when it was refused. */
function come(room: ConnectionRoom, idle: number | "busy", address?: string): Client | undefined {
  // Longer than the pause after a look at so few.
  vi.advanceTimersByTime(10);
  if (!room.makeRoomFor(address)) return undefined;
  const client = clientOf(idle);
  room.enter(client, address);
  return client;
}

const closedOf = (clients: ReadonlyArray<Client | undefined>): number[] =>
  clients.flatMap((client, i) => (client?.isClosed === true ? [i] : []));

test("while there is room, no connection is looked at", () => {
  const room = openRoom(3);
  const all = [come(room, 1), come(room, 2), come(room, 3)];
  expect([room.size, all.map((client) => client?.looks), crowded]).toEqual([3, [0, 0, 0], []]);
});

test("the longest idle makes room, whatever the order in which they came, and busy ones stay", () => {
  const room = openRoom(4);
  const all = [come(room, 30), come(room, "busy"), come(room, 10), come(room, 20)];
  const later = [come(room, 40), come(room, 50)];
  expect([closedOf(all), closedOf(later), room.size]).toEqual([[2, 3], [], 4]);
  expect(crowded).toEqual(["displaced", "displaced"]);
});

test("when none is idle, the next one is refused, until one has left", () => {
  const room = openRoom(2);
  const [first] = [come(room, "busy"), come(room, "busy")];
  expect([come(room, 1), room.size, crowded]).toEqual([undefined, 2, ["refused"]]);
  if (first !== undefined) room.leave(first);
  expect([come(room, "busy")?.isClosed, room.size]).toEqual([false, 2]);
});

test("one that asked for something since it was found idle is not closed, nor one that is idle again", () => {
  const room = openRoom(1_000);
  const all = Array.from({ length: 1_000 }, (_, i) => come(room, i));
  // One look finds all of them, and the next ones come before another.
  vi.advanceTimersByTime(10);
  expect(room.makeRoomFor(undefined)).toBe(true);
  expect(closedOf(all)).toEqual([0]);
  (all[1] as Client).idleSinceMs = undefined;
  (all[2] as Client).idleSinceMs = 5_000;
  room.enter(clientOf(6_000), undefined);
  expect(room.makeRoomFor(undefined)).toBe(true);
  expect(closedOf(all)).toEqual([0, 3]);
});

test("an address that holds its share makes room for its next connections itself", () => {
  const room = openRoom(10, 0.5);
  const other = [come(room, 1, "b")];
  const greedy = Array.from({ length: 12 }, (_, i) => come(room, 100 + i, "a"));
  expect(closedOf(other)).toEqual([]);
  expect([closedOf(greedy), room.size]).toEqual([[0, 1, 2, 3, 4, 5, 6], 6]);
});

test("an address that is busy on its share is refused, and others are not", () => {
  const room = openRoom(10, 0.5);
  const greedy = Array.from({ length: 10 }, () => come(room, "busy", "a"));
  expect(greedy.filter((client) => client !== undefined)).toHaveLength(5);
  expect(crowded).toEqual(Array.from({ length: 5 }, () => "refused"));
  expect(come(room, "busy", "b")).toBeDefined();
});

test("idle connections of others do not make a share smaller", () => {
  const room = openRoom(10, 0.5);
  for (let i = 0; i < 10; i++) come(room, i, `held by ${i}`);
  const gateway = Array.from({ length: 5 }, () => come(room, "busy", "gateway"));
  expect(gateway.every((client) => client !== undefined)).toBe(true);
  expect([come(room, "busy", "gateway"), room.size]).toEqual([undefined, 10]);
});

test("connections of no share may be all, and then others find room by the same rule", () => {
  const room = openRoom(4, 0.5);
  const proxy = Array.from({ length: 4 }, (_, i) => come(room, i, undefined));
  expect(proxy.every((client) => client !== undefined)).toBe(true);
  expect([come(room, "busy", "a") !== undefined, closedOf(proxy)]).toEqual([true, [0]]);
});

test("one that goes on as another keeps its share, and leaves once", () => {
  const room = openRoom(2, 0.5);
  const handshake = clientOf(1);
  const served = clientOf("busy");
  room.enter(handshake, "a");
  room.replace(handshake, served);
  room.leave(handshake);
  expect([room.size, room.makeRoomFor("a")]).toEqual([1, false]);
  room.leave(served);
  room.leave(served);
  expect([room.size, room.makeRoomFor("a")]).toEqual([0, true]);
});

test("however many come while all are busy, they are looked at only now and then", () => {
  const room = openRoom(10_000);
  const all = Array.from({ length: 10_000 }, () => clientOf("busy"));
  for (const client of all) room.enter(client, "a");
  for (let i = 0; i < 1_000; i++) {
    expect(room.makeRoomFor("b")).toBe(false);
    vi.advanceTimersByTime(1);
  }
  expect(all[0]?.looks).toBeGreaterThan(5);
  expect(all[0]?.looks).toBeLessThanOrEqual(20);
});
