import { expect, test } from "vitest";
import { overrideRecordId, type RecordKind } from "../records.ts";
import { keySlot } from "./connect.ts";
import { countedHash, RedisKeys } from "./keys.ts";

const keys = new RedisKeys();
const place = (kind: RecordKind, id: string) => keys.record({ workspaceId: "ws_1", kind, id });

test("every Redis key begins with the prefix and its workspace", () => {
  const all = [
    place("key", "ha/sh+=").key,
    place("workspace", "ws_1").key,
    place("override", overrideRecordId("rlns_1", "x")).key,
    keys.changes("ws_1"),
    keys.history("ws_1"),
    keys.projectionState("ws_1"),
    keys.counter("ws_1", countedHash("name", "n", "x"), 60_000),
    keys.credits("ws_1", "key_1"),
    keys.creditsDirty("ws_1"),
    keys.creditsLoad("ws_1"),
    keys.events("ws_1"),
    keys.pods("ws_1", "pol_1"),
  ];
  for (const key of all) expect(key).toMatch(/^ps:ws_1:/);
  expect(new Set(all).size).toBe(all.length);
});

test("all Redis keys of one script are in one slot", () => {
  expect(keySlot(keys.changes("ws_1"))).toBe(keySlot(keys.projectionState("ws_1")));
  expect(keySlot(keys.history("ws_1"))).toBe(keySlot(keys.projectionState("ws_1")));
  expect(keySlot(keys.changes("_central"))).toBe(keySlot(keys.knownWorkspaces()));
  const { key } = place("overridePatterns", "rlns_1");
  expect(keySlot(keys.overridesDeleted(key))).toBe(keySlot(key));
  expect(keySlot("123456789")).toBe(12739);
});

test("a counter identifier that equals another field name gets a separate field", () => {
  const fields = ["*", "=*", "", "a/b"].map(
    (identifier) => place("override", overrideRecordId("rlns_1", identifier)).field,
  );
  const all = [...fields, place("overridePatterns", "rlns_1").field];
  expect(new Set(all).size).toBe(5);
  expect(place("override", "rlns_1/a/b")).toEqual({ key: "ps:ws_1:o:{rlns_1}", field: "=a/b" });
});

test("a root key has no Redis key", () => {
  expect(() => place("rootKey", "x")).toThrow("not kept in Redis");
});

test("each namespace name has its own Redis key, even with special characters", () => {
  const keys = ["a", "}", "{a}", "a b", "*", "rlns_1"].map((name) => place("namespaceName", name).key);
  expect(new Set(keys).size).toBe(6);
  expect(keys).not.toContain(place("namespace", "a").key);
  expect(place("namespaceName", "a b")).toEqual({ key: "ps:ws_1:nn:{a b}" });
});

test("hashes of different triples of values differ even if the concatenated values are equal", () => {
  const hashes = [
    countedHash("name", "a", "b:c"),
    countedHash("name", "a:b", "c"),
    countedHash("namespace", "a", "b:c"),
    countedHash("name", "", "a:b:c"),
  ];
  expect(new Set(hashes).size).toBe(4);
});
