import * as z from "zod";
import { applyCreditsUpdate, type CreditsState } from "../../../core/credits/credits.ts";
import { toCreditRow, toCreditsState } from "../../domain/keys/credits.ts";
import { inCreditsTransaction } from "../../domain/keys/credits-transaction.ts";
import { auditEvent, lockManaged } from "../../domain/managed/changes.ts";
import { MANAGED } from "../../domain/managed/things.ts";
import { invalidField } from "../../domain/refusals/invalid-field.ts";
import { onApi } from "../../needed-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { insertAudit } from "../../store/audit.ts";
import { touchKey } from "../../store/key-changes.ts";
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
    .describe("With `set`, null or no value makes the key unlimited and clears its refill.")
    .meta({ examples: [1000] }),
});
type Body = z.output<typeof Body>;

const Data = z.strictObject({
  remaining: z
    .int()
    .nullable()
    .describe("Credits left after the change; null is unlimited.")
    .meta({ examples: [1500] }),
  refill: Refill.optional().describe("How credits come back, if they do."),
});
type Data = z.input<typeof Data>;

const needed = { updateKey: onApi("update_key") };

export const updateCredits = defineProcedure({
  path: "keys.updateCredits",
  effect: "change",
  summary: "Set, add or take credits",
  description:
    "Changes the number that is left at that moment, so no credits are lost that are spent at the same time. A decrement by more than is left results in 0. The refill stays, unless the key becomes unlimited.",
  permissions: needed,
  errors: ["key_not_found"],
  body: Body,
  data: Data,
  handle,
});

/** Manifests do not contain credits, so any caller may change those of a managed key. */
async function handle(call: Call<Body, typeof needed>): Promise<Data> {
  const { body, caller, deps } = call;
  const ref = { workspaceId: caller.workspaceId, keyId: body.keyId };
  return inCreditsTransaction(deps, ref, async (tx, changeCredits) => {
    const key = await lockManaged(tx, MANAGED.key, { workspaceId: caller.workspaceId, which: body.keyId });
    call.require(needed.updateKey, key.api_id);
    let next: CreditsState = { remaining: null };
    await changeCredits((current) => {
      next = creditsAfter(toCreditsState(current), body);
      return toCreditRow(next);
    });
    await touchKey(tx, { ...ref, manager: key.manager, updatedAt: deps.nowMs() });
    await insertAudit(tx, call, [auditEvent(MANAGED.key, key, "Updated")]);
    return next;
  });
}

/** Throws PublicError 400 when the operation is not possible for this key or lacks a value. */
function creditsAfter(current: CreditsState, { operation, value }: Body): CreditsState {
  const next = applyCreditsUpdate(current, { operation, value });
  if (!("error" in next)) return next;
  const isValueAtFault = value === undefined || value === null || current.remaining !== null;
  throw invalidField(isValueAtFault ? "body.value" : "body.operation", next.error);
}
