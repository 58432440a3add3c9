import { Socket } from "node:net";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ReadScheduler } from "./read-scheduler.ts";

let turns: ReadScheduler;
let faults: unknown[];
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setImmediate", "clearImmediate", "performance"] });
  faults = [];
  turns = new ReadScheduler((error) => void faults.push(error));
});
afterEach(() => {
  vi.useRealTimers();
  expect(faults).toEqual([]);
});

/** Returns connections that are being read. */
const sockets = <N extends number>(count: N) =>
  Array.from({ length: count }, () => {
    const socket = new Socket();
    socket.resume();
    turns.watch(socket);
    return socket;
  });
const count = (socket: Socket | undefined, pieces: number): void => {
  for (let i = 0; i < pieces; i++) turns.count(socket as Socket, 1);
};
const releaseTurn = (): void => void vi.advanceTimersByTime(0);
const held = (all: readonly Socket[]): boolean[] => all.map((socket) => socket.isPaused());

test("read scheduler pauses a connection with many small chunks, and lets light connections continue", () => {
  const all = sockets(3);
  const [heavy, light] = all;
  count(light, 10);
  count(heavy, 10_000);
  expect(held(all)).toEqual([true, true, true]);
  releaseTurn();
  expect(held(all)).toEqual([true, false, false]);
});

test("read scheduler pauses a connection that is opened in an exhausted time slice", () => {
  count(sockets(1)[0], 10_000);
  const [late] = sockets(1) as [Socket];
  expect(late.isPaused()).toBe(true);
  releaseTurn();
  expect(late.isPaused()).toBe(false);
});

test("read scheduler queues connections that exhaust a time slice, except light connections", () => {
  const all = sockets(10);
  for (const socket of all.slice(0, 5)) count(socket, 500);
  count(all[5], 31);
  releaseTurn();
  expect(held(all)).toEqual([true, true, true, true, true, false, false, false, false, false]);
});

test("read scheduler lets connections with large chunks continue under overload", () => {
  const all = sockets(200);
  for (const socket of all) count(socket, 20);
  expect(all.every((socket) => socket.isPaused())).toBe(true);
  releaseTurn();
  expect(all.some((socket) => socket.isPaused())).toBe(false);
});

test("read scheduler reads heavy connections one at a time, with pauses between them", () => {
  const all = sockets(4);
  for (const socket of all) count(socket, 10_000);
  releaseTurn();
  const order: number[] = [];
  for (let i = 0; i < 8; i++) {
    let at = -1;
    for (let ms = 0; at === -1 && ms < 5_000; ms += 10) {
      vi.advanceTimersByTime(10);
      at = held(all).indexOf(false);
    }
    expect(held(all).filter((is) => !is)).toHaveLength(1);
    order.push(at);
    count(all[at], 10_000);
    releaseTurn();
  }
  expect(order).toEqual([0, 1, 2, 3, 0, 1, 2, 3]);
});

test("read scheduler pauses for three times the time slice, and skips empty connections sooner", () => {
  const all = sockets(3);
  for (const socket of all) count(socket, 10_000);
  releaseTurn();
  vi.advanceTimersByTime(10);
  const first = held(all).indexOf(false);
  count(all[first], 10_000);
  const later = performance.now() + 200;
  const clock = vi.spyOn(performance, "now").mockReturnValue(later);
  releaseTurn();
  clock.mockRestore();
  vi.advanceTimersByTime(3 * 200 - 10);
  expect(held(all)).toEqual([true, true, true]);
  vi.advanceTimersByTime(20);
  expect(held(all).filter((is) => !is)).toHaveLength(1);
  vi.advanceTimersByTime(60);
  expect(held(all).filter((is) => !is)).toHaveLength(2);
});

test("read scheduler skips queued connections that are empty or closed", () => {
  const all = sockets(3);
  for (const socket of all) count(socket, 10_000);
  releaseTurn();
  turns.leave(all[1] as Socket);
  vi.advanceTimersByTime(10_000);
  expect([held(all), vi.getTimerCount()]).toEqual([[false, false, false], 0]);
});

test("read scheduler keeps the queue order during a full time slice, and releases connections that leave it", async () => {
  vi.useRealTimers();
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  const turnEnds = () => new Promise((resolve) => setImmediate(resolve));
  const all = sockets(5);
  const [a, b, c, d, other] = all as [Socket, Socket, Socket, Socket, Socket];
  const line = [a, b, c, d];
  for (const socket of line) count(socket, 10_000);
  await turnEnds();
  expect(all.map((socket) => turns.isInLine(socket))).toEqual([true, true, true, true, false]);

  count(other, 10_000);
  vi.advanceTimersByTime(20);
  expect(held(all)).toEqual([true, true, true, true, true]);
  turns.leave(b);
  expect(held(all)).toEqual([true, false, true, true, true]);
  expect(turns.isInLine(b)).toBe(false);

  await turnEnds();
  expect(held(all)).toEqual([true, false, true, true, true]);
  const order: number[] = [];
  const times: number[] = [];
  for (let ms = 0; ms < 1_000; ms += 1) {
    vi.advanceTimersByTime(1);
    for (const [at, socket] of all.entries()) {
      if (socket === b || socket.isPaused() || order.includes(at)) continue;
      order.push(at);
      times.push(ms);
    }
  }
  expect(order).toEqual([0, 2, 3, 4]);
  // The connection that has left took no time.
  expect(times.map((ms, i) => ms - (times[i - 1] ?? ms))).toEqual([0, 50, 50, 50]);
  expect(vi.getTimerCount()).toBe(0);
});

test("read scheduler delays resume() on a paused connection until its release", async () => {
  const [socket] = sockets(1) as [Socket];
  count(socket, 10_000);
  socket.resume();
  await Promise.resolve();
  await new Promise(process.nextTick);
  expect(socket.isPaused()).toBe(true);
  turns.leave(socket);
  expect(socket.isPaused()).toBe(false);
});

test("read scheduler keeps a connection paused by its reader after release", () => {
  const [socket] = sockets(1) as [Socket];
  socket.pause();
  count(socket, 10_000);
  turns.leave(socket);
  expect(socket.isPaused()).toBe(true);
});

test("read scheduler forgets a closed connection", async () => {
  const [socket] = sockets(1) as [Socket];
  count(socket, 10_000);
  releaseTurn();
  expect(turns.isInLine(socket)).toBe(true);
  socket.emit("close", false);
  expect(turns.isInLine(socket)).toBe(false);
});
