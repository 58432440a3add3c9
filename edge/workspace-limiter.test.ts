import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { WorkspaceLimiter } from "./workspace-limiter.ts";

/* Three slots, two for each workspace. What runs ends when the test says so. */

const WAIT_MS = 1_000;
const BUSY = { kind: "server_busy", detail: "Much is running. Try again.", headers: { "Retry-After": "5" } };
let limiter: WorkspaceLimiter;
let ends: Map<string, PromiseWithResolvers<void>>;
let started: string[];

beforeEach(() => {
  vi.useFakeTimers();
  limiter = new WorkspaceLimiter({
    total: 3,
    perWorkspace: 2,
    waitersMax: 5,
    waitMsMax: WAIT_MS,
    busy: "Much is running",
  });
  ends = new Map();
  started = [];
});
afterEach(() => void vi.useRealTimers());

/** A query named like its workspace and a number, such as `a1`. */
function run(name: string, signal?: AbortSignal): Promise<string> {
  const end = Promise.withResolvers<void>();
  ends.set(name, end);
  return limiter.run(name.charAt(0), signal, async () => {
    started.push(name);
    await end.promise;
    return name;
  });
}

async function ended(name: string): Promise<void> {
  ends.get(name)?.resolve();
  await vi.advanceTimersByTimeAsync(0);
}

const settle = () => vi.advanceTimersByTimeAsync(0);

test("query slots limit each workspace and leave the remaining slots to other workspaces", async () => {
  for (const name of ["a1", "a2", "a3", "b1", "c1"]) void run(name).catch(() => undefined);
  await settle();
  expect(started).toEqual(["a1", "a2", "b1"]);
});

test("query slots skip a workspace at its limit and start the next waiter", async () => {
  for (const name of ["a1", "a2", "b1", "a3", "c1", "c2"]) void run(name).catch(() => undefined);
  await settle();
  await ended("b1");
  expect(started).toEqual(["a1", "a2", "b1", "c1"]);
  await ended("a1");
  expect(started.at(-1)).toBe("a3");
  await ended("a2");
  expect(started.at(-1)).toBe("c2");
});

test("a query that had to wait uses a slot of its workspace like any other", async () => {
  for (const name of ["a1", "a2", "b1", "a3"]) void run(name);
  await settle();
  await ended("a1");
  await ended("b1");
  expect(started).toEqual(["a1", "a2", "b1", "a3"]);
  for (const name of ["a4", "c1", "c2"]) void run(name).catch(() => undefined);
  await settle();
  expect(started).toEqual(["a1", "a2", "b1", "a3", "c1"]);
});

test("query slots return the work's result and release the slot on failure", async () => {
  const first = run("a1");
  await ended("a1");
  expect(await first).toBe("a1");
  const failing = () => limiter.run("a", undefined, () => Promise.reject(new Error("no")));
  for (let i = 0; i < 5; i++) await expect(failing()).rejects.toThrow("no");
  for (const name of ["a2", "a3", "b1"]) void run(name);
  await settle();
  expect(started).toEqual(["a1", "a2", "a3", "b1"]);
});

test("waiter for a query slot times out, and the next free slot goes to another waiter", async () => {
  for (const name of ["a1", "a2", "b1"]) void run(name);
  const late = expect(run("a3")).rejects.toMatchObject(BUSY);
  await vi.advanceTimersByTimeAsync(WAIT_MS - 1);
  void run("b2");
  await vi.advanceTimersByTimeAsync(1);
  await late;
  await ended("a1");
  expect(started).toEqual(["a1", "a2", "b1", "b2"]);
});

test("query slots drop a waiter whose client has disconnected", async () => {
  for (const name of ["a1", "a2", "b1"]) void run(name);
  const gone = new AbortController();
  const waiting = expect(run("a3", gone.signal)).rejects.toBe("gone");
  gone.abort("gone");
  await waiting;
  await expect(run("a4", AbortSignal.abort("before"))).rejects.toBe("before");
  void run("a5");
  await ended("a1");
  expect(started).toEqual(["a1", "a2", "b1", "a5"]);
  expect(vi.getTimerCount()).toBe(0);
});

test("query slots are unaffected by a client that disconnects during its query", async () => {
  const gone = new AbortController();
  void run("a1", gone.signal);
  for (const name of ["a2", "b1", "b2"]) void run(name).catch(() => undefined);
  await settle();
  gone.abort("gone");
  await settle();
  expect(started).toEqual(["a1", "a2", "b1"]);
  await ended("a1");
  expect(started.at(-1)).toBe("b2");
});

test("query slots alternate between waiting workspaces, regardless of the order in which queries arrive", async () => {
  for (const name of ["a1", "a2", "c1", "a3", "a4", "a5", "b1", "d1", "b2"]) void run(name);
  await settle();
  expect(started).toEqual(["a1", "a2", "c1"]);
  for (const name of ["c1", "a1", "b1", "a2", "a3"]) await ended(name);
  expect(started.slice(3)).toEqual(["b1", "a3", "d1", "b2", "a4"]);
});

test("query slots reject waiters above the workspace limit immediately", async () => {
  for (const name of ["a1", "a2", "a3", "a4", "a5", "a6", "a7"]) void run(name);
  await settle();
  await expect(run("a8")).rejects.toMatchObject(BUSY);
  void run("b1");
  await ended("a2");
  expect(started).toEqual(["a1", "a2", "b1", "a3"]);
});

test("query slot that is released twice is free only once", async () => {
  const release = await limiter.acquire("a");
  await limiter.acquire("a");
  release();
  release();
  for (const name of ["b1", "b2", "b3"]) void run(name).catch(() => undefined);
  await settle();
  expect(started).toEqual(["b1", "b2"]);
});
