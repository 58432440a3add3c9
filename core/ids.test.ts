import fc from "fast-check";
import { expect, test } from "vitest";
import { ID_PREFIXES, type IdKind, makeId } from "./ids.ts";

const kinds = Object.keys(ID_PREFIXES) as IdKind[];

test.each(kinds)("generated id of kind %s is its prefix and 16 alphanumeric characters", (kind) => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 16, maxLength: 24 }), (bytes) => {
      expect(makeId(kind, bytes)).toMatch(new RegExp(`^${ID_PREFIXES[kind]}_[a-zA-Z0-9]{16}$`));
    }),
    { numRuns: 20 },
  );
});

test("every id prefix belongs to exactly one kind", () => {
  expect(new Set(Object.values(ID_PREFIXES)).size).toBe(kinds.length);
});

test("lowest and highest random bytes map to the first and last id character", () => {
  expect(makeId("key", new Uint8Array(16))).toBe(`key_${"0".repeat(16)}`);
  expect(makeId("key", new Uint8Array(16).fill(255))).toBe(`key_${"z".repeat(16)}`);
});

test("generated ids depend on the upper 24 bits of each of four words", () => {
  const bytes = Uint8Array.from({ length: 17 }, (_, i) => i * 15);
  const id = makeId("api", bytes);
  expect(makeId("api", bytes.with(16, 1))).toBe(id);
  for (const at of [0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14])
    expect(makeId("api", bytes.with(at, (bytes[at] ?? 0) ^ 0x80))).not.toBe(id);
});

test("an id depends on the 16 bytes from the given offset only", () => {
  const bytes = Uint8Array.from({ length: 40 }, (_, i) => i * 6);
  expect(makeId("key", bytes, 20)).toBe(makeId("key", bytes.subarray(20, 36)));
  expect(makeId("key", bytes, 24)).toBe(makeId("key", bytes.subarray(24)));
});

test("id generation throws when it gets fewer than 16 bytes", () => {
  expect(() => makeId("key", new Uint8Array(15))).toThrow(RangeError);
  expect(() => makeId("key", new Uint8Array(31), 16)).toThrow(RangeError);
});
