import * as z from "zod";
import { changeCreditsOfKey } from "../../domain/keys/change-credits.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { KeyId, Refill } from "../schemas.ts";

const Body = z.strictObject({
  keyId: KeyId,
  operation: z
    .enum(["set", "increment", "decrement"])
    .describe(
      "`set` replaces the number; `increment` and `decrement` change it by `value`, and need a key with limited credits.",
    )
    .meta({ examples: ["increment"] }),
  value: z
    .int()
    .min(0)
    .nullable()
    .optional()
    .describe("Number of credits. With `set`, null or a missing value makes the key unlimited and removes its refill.")
    .meta({ examples: [1000] }),
});
type Body = z.output<typeof Body>;

const Data = z.strictObject({
  remaining: z
    .int()
    .nullable()
    .describe("Remaining credits after the change; null means unlimited.")
    .meta({ examples: [1500] }),
  refill: Refill.optional().describe("Refill of the credits, if the key has one."),
});
type Data = z.input<typeof Data>;

const required = { updateKey: onApi("update_key") };

export const updateCredits = defineProcedure({
  path: "keys.updateCredits",
  effect: "change",
  summary: "Set, add or subtract credits",
  description:
    "Changes the remaining credits atomically, so no concurrent spending is lost. A decrement below 0 results in 0. The refill remains, unless the key becomes unlimited.",
  permissions: required,
  errors: ["key_not_found"],
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Data> {
  const { keyId, operation, value } = call.body;
  const change = { keyId, operation, value, needed: required.updateKey, operationField: "body.operation" };
  return changeCreditsOfKey(call, change);
}
