import { hash } from "node:crypto";
import { expect, test } from "vitest";
import { lastOfEachHash, readPrefixedKey, storedHash } from "./migration.ts";

const sha256 = (text: string): string => hash("sha256", text, "hex");

test.each([
  { key: "acme_abcdefgh_secret", long: "secret", start: "acme_abcd" },
  { key: "acme_prod_abcdefgh_secret", long: "secret", start: "acme_prod_abcd" },
  { key: "acme_ab_secret", long: "secret", start: "acme_ab_s" },
  { key: "a__secret", long: "secret", start: "a__sec" },
  { key: "__secret", long: "secret", start: "_sec" },
  { key: "ä_ß_ü", long: "ü", start: "ä_ß_ü" },
])("migrated key $key is looked up by the hash of $long and displayed as $start", ({ key, long, start }) => {
  expect(readPrefixedKey(key)).toEqual({ hash: sha256(long), start });
});

test.each(["", "secret", "acme_secret", "acme_abcdefgh_", "_", "__", "acme-abcdefgh-secret"])(
  "migrated prefixed key format rejects %j",
  (key) => expect(readPrefixedKey(key)).toBeUndefined(),
);

test("migrated hexadecimal hash is stored in lower case, and other encodings are stored unchanged", () => {
  const hex = sha256("secret");
  expect(storedHash("prefixed", hex.toUpperCase())).toBe(hex);
  expect(storedHash("sha256", hex.toUpperCase())).toBe(hex.toUpperCase());
  expect(storedHash("prefixed", "AbC")).toBe("AbC");
});

test("key migration keeps the last of several entries with the same hash, at the position of the first", () => {
  const hex = sha256("secret");
  const entries = [
    { hash: hex, name: "first" },
    { hash: "other", name: "between" },
    { hash: hex.toUpperCase(), name: "last" },
  ];
  expect([...lastOfEachHash("prefixed", entries)]).toEqual([
    [hex, entries[2]],
    ["other", entries[1]],
  ]);
  expect(lastOfEachHash("sha256", entries).size).toBe(3);
});
