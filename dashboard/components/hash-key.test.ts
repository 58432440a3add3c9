import { expect, test } from "vitest";
import { hashKey as hashInStore } from "../../core/keys/key-string.ts";
import { hashKey } from "./hash-key.ts";

test.each(["", "prod_5Kd3NBUAdUnhyzen", "Ключ 支付 🎉"])("browser hash of key %j equals the stored hash", async (key) =>
  expect(await hashKey(key)).toBe(hashInStore(key)),
);
