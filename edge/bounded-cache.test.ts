import { expect, test } from "vitest";
import { BoundedCache } from "./bounded-cache.ts";

test("BoundedCache evicts entries that were not read recently", () => {
  const cache = new BoundedCache<string, number>(3);
  for (const [i, key] of ["a", "b", "c"].entries()) cache.set(key, i);
  cache.get("a");
  expect(cache.set("d", 3)).toEqual([1]);
  expect(["a", "b", "c", "d"].map((key) => cache.get(key))).toEqual([0, undefined, 2, 3]);
});

test("BoundedCache never exceeds `max` entries, even if all are in use", () => {
  const cache = new BoundedCache<number, number>(10);
  for (let i = 0; i < 100; i++) {
    for (let j = 0; j < i; j++) cache.get(j);
    cache.set(i, i);
    expect(cache.size).toBeLessThanOrEqual(10);
    expect(cache.get(i)).toBe(i);
  }
});

test("BoundedCache replaces an existing entry without evicting another", () => {
  const cache = new BoundedCache<string, number>(1);
  cache.set("a", 1);
  expect(cache.set("a", 2)).toEqual([]);
  expect(cache.get("a")).toBe(2);
  expect(cache.delete("a")).toBe(true);
  expect(cache.size).toBe(0);
});

test("BoundedCache limits the total weight, and keeps an oversized entry as its only entry", () => {
  const cache = new BoundedCache<string, string>(100, 10);
  for (const name of ["a", "b", "c"]) cache.set(name, name, 3);
  expect(cache.set("d", "d", 4)).toEqual(["a"]);
  expect(cache.set("e", "e", 10)).toEqual(["b", "c", "d"]);
  expect(cache.set("f", "f", 99)).toEqual(["e"]);
  expect(cache.set("g", "g", 1)).toEqual(["f"]);
  // Replaced, deleted and cleared entries no longer count.
  cache.set("g", "g", 9);
  cache.set("g", "g", 2);
  cache.set("h", "h", 8);
  cache.delete("h");
  expect(cache.set("i", "i", 8)).toEqual([]);
  cache.clear();
  expect(cache.set("j", "j", 10)).toEqual([]);
});

test("BoundedCache evicts other entries when a cached entry grows", () => {
  const cache = new BoundedCache<string, string>(100, 10);
  for (const name of ["a", "b", "c", "d", "e"]) cache.set(name, name, 2);
  expect(cache.set("b", "more of b", 7)).toEqual(["a", "c", "d"]);
  expect(["a", "b", "c", "d", "e"].map((name) => cache.get(name))).toEqual([
    undefined,
    "more of b",
    undefined,
    undefined,
    "e",
  ]);
  // An entry heavier than the maximum is kept alone.
  expect(cache.set("b", "most of b", 99)).toEqual(["e"]);
  expect(cache.get("b")).toBe("most of b");
});

test("BoundedCache total weight never exceeds its limit under random operations", () => {
  const cache = new BoundedCache<number, number>(20, 50);
  const weights = new Map<number, number>();
  let seed = 7;
  const next = (below: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return seed % below;
  };
  for (let turn = 0; turn < 20_000; turn++) {
    const key = next(40);
    if (next(5) === 0) {
      cache.delete(key);
      weights.delete(key);
    } else {
      const weight = next(12);
      for (const gone of cache.set(key, key, weight)) weights.delete(gone);
      weights.set(key, weight);
    }
    for (const known of weights.keys()) if (cache.get(known) === undefined) throw new Error(`${known} is gone unsaid`);
    expect([...weights.values()].reduce((sum, one) => sum + one, 0)).toBeLessThanOrEqual(50);
    expect(cache.size).toBe(weights.size);
  }
});
