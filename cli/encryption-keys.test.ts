import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { UsageError } from "./command.ts";
import { keepEncryptionKeys, parseEncryptionKeys, readEncryptionKeys } from "./encryption-keys.ts";

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), "postern-keys-"));
});
afterAll(() => rmSync(dir, { recursive: true }));

const bytes = (fill: number): Buffer => Buffer.alloc(32, fill);
const one = bytes(1).toString("base64");
const other = bytes(250).toString("base64");

describe("encryption keys", () => {
  test.each([
    { name: "with commas", text: `2026:${one},2025:${other}` },
    { name: "with lines, as in a file", text: `2026:${one}\n2025:${other}\n` },
    { name: "with spaces and empty entries", text: ` 2026:${one} ,, \r\n 2025:${other}` },
    { name: "in the URL's alphabet, without padding", text: `2026:${one},2025:${bytes(250).toString("base64url")}` },
  ])("encryption keys are read $name in their order", ({ text }) => {
    const keys = parseEncryptionKeys(text, "SOURCE");
    expect(keys.map(({ id, secret }) => [id, Buffer.from(secret)])).toEqual([
      ["2026", bytes(1)],
      ["2025", bytes(250)],
    ]);
  });

  test.each([
    { name: "nothing", text: " ,\n", says: "contains no encryption key" },
    { name: "no id", text: one, says: "entry 1: expected ID:BASE64" },
    { name: "an empty id", text: `:${one}`, says: "entry 1: expected ID:BASE64" },
    { name: "an id with a space", text: `2026:${one},20 25:${other}`, says: "entry 2: expected ID:BASE64" },
    { name: "an id of 65", text: `${"i".repeat(65)}:${one}`, says: "entry 1" },
    { name: "31 bytes", text: `2026:${bytes(1).subarray(1).toString("base64")}`, says: "2026 must be 32 bytes" },
    { name: "33 bytes", text: `2026:${Buffer.alloc(33, 1).toString("base64")}`, says: "2026 must be 32 bytes" },
    { name: "text that is not base64", text: `2026:${one.slice(0, -2)}!!`, says: "2026 must be 32 bytes" },
    { name: "no key", text: "2026:", says: "2026 must be 32 bytes" },
    { name: "one id twice", text: `2026:${one},2026:${other}`, says: "two encryption keys with the same id" },
  ])("encryption keys with $name are rejected without printing a secret", ({ text, says }) => {
    const read = () => parseEncryptionKeys(text, "SOURCE");
    expect(read).toThrow(UsageError);
    expect(read).toThrow(says);
    expect(read).toThrow(expect.not.objectContaining({ message: expect.stringContaining(one.slice(0, 12)) }));
  });

  test("encryption keys are optional, and come from either the variable or the file", () => {
    const file = join(dir, "keys");
    writeFileSync(file, `filed:${one}\n`);
    const env = { POSTERN_ENCRYPTION_KEYS: `given:${one}` };
    expect(readEncryptionKeys(undefined, env)?.[0].id).toBe("given");
    expect(readEncryptionKeys(file, {})?.[0].id).toBe("filed");
    expect(readEncryptionKeys(file, { POSTERN_ENCRYPTION_KEYS: "" })?.[0].id).toBe("filed");
    expect(readEncryptionKeys(undefined, {})).toBeUndefined();
    expect(() => readEncryptionKeys(file, env)).toThrow("exclude each other");
    expect(() => readEncryptionKeys(join(dir, "none"), {})).toThrow(
      "it does not exist; correct --encryption-keys-file",
    );
  });

  test("encryption keys of a data directory are created once, readable only by their owner", () => {
    const data = join(dir, "data", "deeper");
    const made = keepEncryptionKeys(data);
    expect(made.map(({ id }) => id)).toEqual(["dev"]);
    expect(keepEncryptionKeys(data)).toEqual(made);
    expect(statSync(join(data, "encryption-keys")).mode & 0o777).toBe(0o600);
  });
});
