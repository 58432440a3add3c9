import { expect, test } from "vitest";
import { hashKey } from "../../../core/keys/key-string.ts";
import { readSubject } from "./subject.ts";

test.each([
  {
    name: "a request id",
    text: " req_9Tz5Bv2Nm7Qw4Xy1 ",
    subject: { kind: "request", requestId: "req_9Tz5Bv2Nm7Qw4Xy1" },
  },
  { name: "the id of a key", text: "key_4fGh7Jk2LmN8pQrS", subject: { kind: "key", keyId: "key_4fGh7Jk2LmN8pQrS" } },
  { name: "nothing", text: "  ", subject: undefined },
])("explain page recognizes $name by its format", async ({ text, subject }) => {
  expect(await readSubject(text)).toEqual(subject);
});

test.each(["prod_5Kd3NBUAdUnhyzen", "key_with_another_form", "ключ 🙂"])(
  "explain page replaces key %s by its hash",
  async (key) => {
    expect(await readSubject(`\n${key}\n`)).toEqual({ kind: "secret", keyHash: hashKey(key) });
  },
);
