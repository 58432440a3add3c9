import * as z from "zod";
import { changeCreditsOfKey } from "../../domain/keys/change-credits.ts";
import { invalidField } from "../../domain/refusals/invalid-field.ts";
import { onApi } from "../../needed-permissions.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../../procedure-v1.ts";
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
    .describe("With `set`, null makes the key unlimited and clears its refill.")
    .meta({ examples: [1000] }),
});
type Body = z.output<typeof Body>;

const Answer = z.object({
  remaining: z
    .int()
    .nullable()
    .describe("Credits left after the change; null is unlimited.")
    .meta({ examples: [1500] }),
});

const needed = { updateKey: onApi("update_key") };

export const updateRemaining = defineV1Procedure({
  path: "keys.updateRemaining",
  method: "POST",
  successor: "keys.updateCredits",
  effect: "change",
  summary: "Set, add or take credits",
  description:
    "Changes the number that is left at that moment, so no credits are lost that are spent at the same time. A decrement by more than is left results in 0.",
  permissions: needed,
  errors: ["key_not_found"],
  input: Body,
  check,
  answer: Answer,
  handle,
});

function check({ op, value }: Body): void {
  if (op !== "set" && value === null) throw invalidField("body.value", `expected a number with ${op}`);
}

async function handle(call: Call<Body, typeof needed>): Promise<z.input<typeof Answer>> {
  const { keyId, op: operation, value } = call.body;
  const change = { keyId, operation, value, needed: needed.updateKey, operationField: "body.op" };
  const { remaining } = await changeCreditsOfKey(call, change);
  return { remaining };
}
