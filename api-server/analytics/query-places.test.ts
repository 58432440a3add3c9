import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { QueryPlaces } from "./query-places.ts";

/* Three places, two for each workspace. What runs ends when the test says so. */

const WAIT_MS = 1_000;
let places: QueryPlaces;
let ends: Map<string, PromiseWithResolvers<void>>;
let started: string[];

beforeEach(() => {
  vi.useFakeTimers();
  places = new QueryPlaces({ total: 3, perWorkspace: 2, waitMsMax: WAIT_MS });
  ends = new Map();
  started = [];
});
afterEach(() => void vi.useRealTimers());

/** A query named like its workspace and a number, such as `a1`. */
function run(name: string, signal?: AbortSignal): Promise<string> {
  const end = Promise.withResolvers<void>();
  ends.set(name, end);
  return places.run(name.charAt(0), signal, async () => {
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

test("a workspace gets its part, and leaves the rest to others", async () => {
  for (const name of ["a1", "a2", "a3", "b1", "c1"]) void run(name).catch(() => undefined);
  await settle();
  expect(started).toEqual(["a1", "a2", "b1"]);
});

test("the first that may run follows, also past one whose workspace has its part", async () => {
  for (const name of ["a1", "a2", "b1", "a3", "c1", "c2"]) void run(name).catch(() => undefined);
  await settle();
  await ended("b1");
  expect(started).toEqual(["a1", "a2", "b1", "c1"]);
  await ended("a1");
  expect(started.at(-1)).toBe("a3");
  await ended("a2");
  expect(started.at(-1)).toBe("c2");
});

test("one that has waited takes a place like any other", async () => {
  for (const name of ["a1", "a2", "b1", "a3"]) void run(name);
  await settle();
  await ended("a1");
  await ended("b1");
  expect(started).toEqual(["a1", "a2", "b1", "a3"]);
  for (const name of ["a4", "c1", "c2"]) void run(name).catch(() => undefined);
  await settle();
  expect(started).toEqual(["a1", "a2", "b1", "a3", "c1"]);
});

test("returns what the work returns; work that fails leaves its place as well", async () => {
  const first = run("a1");
  await ended("a1");
  expect(await first).toBe("a1");
  const failing = () => places.run("a", undefined, () => Promise.reject(new Error("no")));
  for (let i = 0; i < 5; i++) await expect(failing()).rejects.toThrow("no");
  for (const name of ["a2", "a3", "b1"]) void run(name);
  await settle();
  expect(started).toEqual(["a1", "a2", "a3", "b1"]);
});

test("waiting ends in time, and a place that becomes free later goes to one that still waits", async () => {
  for (const name of ["a1", "a2", "b1"]) void run(name);
  const late = expect(run("a3")).rejects.toMatchObject({ reason: "unavailable" });
  await vi.advanceTimersByTimeAsync(WAIT_MS - 1);
  void run("b2");
  await vi.advanceTimersByTimeAsync(1);
  await late;
  await ended("a1");
  expect(started).toEqual(["a1", "a2", "b1", "b2"]);
});

test("a caller that has gone waits no more and takes no place", async () => {
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

test("a caller that goes while its query runs changes nothing for the others", async () => {
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
