import { randomBytes } from "node:crypto";
import { describe, expect, test } from "vitest";
import { makeId } from "../../core/ids.ts";
import { makeKeyString } from "../../core/keys/key-string.ts";
import { recognize } from "./recognize.ts";

test("1,000 generated keys with and without prefix are recognized as secrets", () => {
  for (let n = 0; n < 1000; n++) {
    const { key } = makeKeyString({ prefix: n % 2 === 0 ? "prod" : undefined, randomBytes: randomBytes(16) });
    expect(recognize(` ${key}\n`), key).toEqual({ kind: "secret", secret: key });
  }
});

test("key ids are recognized as ids", () => {
  for (let n = 0; n < 100; n++) {
    const keyId = makeId("key", randomBytes(16));
    expect(recognize(`${keyId} `)).toEqual({ kind: "keyId", keyId });
  }
});

describe("plain text", () => {
  test.each([
    "Billing",
    "user_123",
    "prod_3Ab9",
    "a name of several words with 1 Number",
    "",
    "Ключ 支付",
    "customer-000042",
  ])("%j is recognized as plain text", (text) => expect(recognize(text)).toEqual({ kind: "text", text }));
});

test.each([
  "sk_live_4eC39HqLyjWDarjtT1zdp7dcX",
  "acme_BRTRKFsL_51FwqftsmMDHHbJAMEXXHCgGx",
  "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
])("key of another product is recognized as a secret: %s", (key) => expect(recognize(key).kind).toBe("secret"));
