import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyText } from "../../test/builders/text.ts";
import { encodeBase58, hashKey, makeKeyString } from "./key-string.ts";

const ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

const bytesOf = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex, "hex"));

describe("base58", () => {
  test.each([
    { hex: "", text: "" },
    { hex: "00", text: "1" },
    { hex: "0000", text: "11" },
    { hex: "39", text: "z" },
    { hex: "3a", text: "21" },
    { hex: "61", text: "2g" },
    { hex: "626262", text: "a3gV" },
    { hex: "636363", text: "aPEr" },
    { hex: "00eb15231dfceb60925886b67d065299925915aeb172c06647", text: "1NS17iag9jJgTHD1VXjvLCEnZuQ3rJDE9L" },
    { hex: "00000000000000000000", text: "1111111111" },
  ])("base58 encodes hex $hex as $text", ({ hex, text }) => expect(encodeBase58(bytesOf(hex))).toBe(text));

  test("base58 text decodes to the bytes that it encodes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 255 }), (bytes) => {
        const text = encodeBase58(bytes);
        const zeros = /^1*/.exec(text)?.[0].length ?? 0;
        let number = 0n;
        for (const character of text) number = number * 58n + BigInt(ALPHABET.indexOf(character));
        const hex = number === 0n ? "" : number.toString(16);
        const decoded = [...new Uint8Array(zeros), ...bytesOf(hex.length % 2 === 0 ? hex : `0${hex}`)];
        expect(decoded).toEqual([...bytes]);
      }),
    );
  });
});

describe("a key's string", () => {
  const randomBytes = Uint8Array.from({ length: 16 }, (_, i) => 200 + i);

  test("generated key is the prefix, an underscore and the random part", () => {
    const { key, start } = makeKeyString({ prefix: "my_app", randomBytes });
    expect(key).toBe(`my_app_${encodeBase58(randomBytes)}`);
    expect(start).toBe(`my_app_${encodeBase58(randomBytes).slice(0, 4)}`);
  });

  test.each([undefined, ""])("generated key without a prefix is only the random part (%j)", (prefix) => {
    const { key, start } = makeKeyString({ prefix, randomBytes });
    expect(key).toBe(encodeBase58(randomBytes));
    expect(key.startsWith(start)).toBe(true);
    expect(start).toHaveLength(4);
  });

  test("generated key has about 22 characters for 16 bytes and 87 for 64", () => {
    expect(makeKeyString({ randomBytes }).key.length).toBe(22);
    expect(makeKeyString({ randomBytes: new Uint8Array(64).fill(255) }).key.length).toBe(88);
  });
});

describe("a key's hash", () => {
  test("key hash is SHA-256 in padded base64", () => {
    expect(hashKey("abc")).toBe("ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
  });

  test("key hash covers the exact UTF-8 bytes and has 44 characters", () => {
    fc.assert(
      fc.property(anyText(), (key) => {
        expect(hashKey(key)).toBe(createHash("sha256").update(key, "utf8").digest("base64"));
        expect(hashKey(key)).toHaveLength(44);
      }),
    );
    expect(hashKey("key ")).not.toBe(hashKey("key"));
    expect(hashKey("Key")).not.toBe(hashKey("key"));
  });
});
