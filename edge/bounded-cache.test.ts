import { expect, test } from "vitest";
import { BoundedCache } from "./bounded-cache.ts";

test("an entry that was read recently is kept, one that was not is evicted", () => {
  const cache = new BoundedCache<string, number>(3);
  for (const [i, key] of ["a", "b", "c"].entries()) cache.set(key, i);
  cache.get("a");
  expect(cache.set("d", 3)).toBe(1);
  expect(["a", "b", "c", "d"].map((key) => cache.get(key))).toEqual([0, undefined, 2, 3]);
});

test("it never holds more than `max` entries, also when all are in use", () => {
  const cache = new BoundedCache<number, number>(10);
  for (let i = 0; i < 100; i++) {
    for (let j = 0; j < i; j++) cache.get(j);
    cache.set(i, i);
    expect(cache.size).toBeLessThanOrEqual(10);
    expect(cache.get(i)).toBe(i);
  }
});

test("an entry that is set again is replaced, and none is evicted", () => {
  const cache = new BoundedCache<string, number>(1);
  cache.set("a", 1);
  expect(cache.set("a", 2)).toBeUndefined();
  expect(cache.get("a")).toBe(2);
  expect(cache.delete("a")).toBe(true);
  expect(cache.size).toBe(0);
});
