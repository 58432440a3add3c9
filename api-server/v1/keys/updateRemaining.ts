import * as z from "zod";
import { changeCreditsOfKey } from "../../domain/keys/change-credits.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { invalidField } from "../../domain/refusals/refusals.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../procedure.ts";
import { KeyId } from "../schemas.ts";

const Body = z.object({
  keyId: KeyId,
  op: z
    .enum(["increment", "decrement", "set"])
    .describe(
      "`set` replaces the number; `increment` and `decrement` change it by `value`, and need a key with limited credits.",
    )
    .meta({ examples: ["increment"] }),
  value: z
    .int()
    .min(0)
    .nullable()
    .describe("Number of credits. With `set`, null makes the key unlimited and removes its refill.")
    .meta({ examples: [1000] }),
});
type Body = z.output<typeof Body>;

const ResponseBody = z.object({
  remaining: z
    .int()
    .nullable()
    .describe("Remaining credits after the change; null means unlimited.")
    .meta({ examples: [1500] }),
});

const required = { updateKey: onApi("update_key") };

export const updateRemaining = defineV1Procedure({
  path: "keys.updateRemaining",
  method: "POST",
  successor: "keys.updateCredits",
  effect: "change",
  summary: "Set, add or subtract credits",
  description:
    "Changes the remaining credits atomically, so no concurrent spending is lost. A decrement below 0 results in 0.",
  permissions: required,
  errors: ["key_not_found"],
  input: Body,
  check,
  response: ResponseBody,
  handle,
});

function check({ op, value }: Body): void {
  if (op !== "set" && value === null) throw invalidField("body.value", `expected a number with ${op}`);
}

async function handle(call: Call<Body, typeof required>): Promise<z.input<typeof ResponseBody>> {
  const { keyId, op: operation, value } = call.body;
  const change = { keyId, operation, value, needed: required.updateKey, operationField: "body.op" };
  const { remaining } = await changeCreditsOfKey(call, change);
  return { remaining };
}
