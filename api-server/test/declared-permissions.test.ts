import { expect, test } from "vitest";
import * as z from "zod";
import { onApi, onNamespace, onRbac } from "../domain/permissions/required-permissions.ts";
import { type Call, type CallNeeding, defineProcedure } from "../procedure.ts";

/*
 * The compiler checks what handlers require against what their procedure declares: `npm run check` fails when one of the lines
 * below that must not compile does.
 */

const required = { updateKey: onApi("update_key"), encryptKey: onApi("encrypt_key", "with `recoverable`") };
const Body = z.strictObject({});

const procedure = {
  path: "keys.example",
  effect: "read",
  summary: "",
  description: "",
  errors: [],
  body: Body,
  data: Body,
} as const;

test("handler that requires an undeclared permission does not compile", () => {
  const handle = async (call: Call<object, typeof required>) => {
    call.require(required.updateKey, "api_1");
    // The same permission under another name is the same one.
    call.require(onApi("encrypt_key"), "api_1");
    // @ts-expect-error: never declared.
    call.require(onApi("delete_key"), "api_1");
    // @ts-expect-error: neither asked without a refusal, ...
    call.holds(onNamespace("limit"), "rlns_1");
    // @ts-expect-error: ... nor for some object.
    call.holdsForSome(onRbac("read_role"));
    // @ts-expect-error: nor for which ones.
    call.idsHeld(onRbac("read_role"));
    return {};
  };
  expect(defineProcedure({ ...procedure, permissions: required, handle }).permissions).toBe(required);

  // @ts-expect-error: the handler requires more than this one declares.
  defineProcedure({ ...procedure, permissions: { updateKey: onApi("update_key") }, handle });
  // @ts-expect-error: there is no such action.
  onApi("update_kye");
});

test("helper accepts only calls whose procedure declares its required permissions", () => {
  const helper = (call: CallNeeding<object, typeof required.encryptKey>) => call.require;
  const pass = (call: Call<object, typeof required>, other: Call<object, { updateKey: typeof required.updateKey }>) => {
    helper(call);
    // @ts-expect-error: a procedure that does not declare `encrypt_key`.
    helper(other);
  };
  expect(pass).toBeTypeOf("function");
});
