import { expect, test } from "vitest";
import type { PublicError } from "../../core/errors.ts";
import { onApi, onRbac } from "../domain/permissions/required-permissions.ts";
import { createGrants } from "./grants.ts";

const updateKey = onApi("update_key");
const encryptKey = onApi("encrypt_key");

test("error for a rejected grant names only the permissions that the root key lacks", () => {
  const { require, holds, holdsForSome, idsHeld } = createGrants(new Set(["api.api_1.update_key", "rbac.*.read_role"]));
  const refusalOf = (run: () => void): PublicError => {
    try {
      run();
    } catch (error) {
      return error as PublicError;
    }
    throw new Error("nothing was refused");
  };
  expect(() => require(updateKey, "api_1")).not.toThrow();
  expect(() => require(onRbac("read_role"))).not.toThrow();
  expect(refusalOf(() => require(updateKey, "api_2"))).toMatchObject({
    kind: "forbidden",
    detail: "The root key lacks the permission api.*.update_key or api.api_2.update_key.",
  });
  // Of no API in particular.
  expect(refusalOf(() => require(updateKey)).detail).toBe("The root key lacks the permission api.*.update_key.");
  expect([holds(updateKey, "api_1"), holds(updateKey, "api_2"), holds(updateKey)]).toEqual([true, false, false]);
  expect([holdsForSome(updateKey), holdsForSome(encryptKey)]).toEqual([true, false]);
  expect([idsHeld(updateKey), idsHeld(encryptKey), idsHeld(onRbac("read_role"))]).toEqual([["api_1"], [], "all"]);
});

test("granting a permission records the use of the root key tuple that covers it", () => {
  const noted: string[] = [];
  const held = new Set(["api.*.update_key", "api.api_1.update_key", "api.api_1.encrypt_key"]);
  const { beyond } = createGrants(held, "The root key", (tuple) => noted.push(tuple));
  const given = ["api.api_1.update_key", "api.api_2.update_key", "api.api_2.encrypt_key", "api.api_1.encrypt_key"];
  expect(beyond(given)).toEqual(["api.api_2.encrypt_key"]);
  expect(noted).toEqual(["api.api_1.update_key", "api.*.update_key", "api.api_1.encrypt_key"]);
});
