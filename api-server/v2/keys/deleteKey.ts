import * as z from "zod";
import { inCreditsTransaction } from "../../domain/keys/credits-transaction.ts";
import { deleteManaged, lockManaged } from "../../domain/managed/changes.ts";
import { MANAGED } from "../../domain/managed/things.ts";
import { onApi } from "../../needed-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { deleteKey as deleteKeyRow, purgeKey } from "../../store/key-changes.ts";
import { Empty, KeyId } from "../schemas.ts";

const Body = z.strictObject({
  keyId: KeyId,
  permanent: z
    .boolean()
    .default(false)
    .describe(
      "false: the key is marked deleted, and analytics and the audit log still know it. true: it is removed with everything that belongs to it.",
    ),
});
type Body = z.output<typeof Body>;

const needed = { deleteKey: onApi("delete_key") };

export const deleteKey = defineProcedure({
  path: "keys.deleteKey",
  effect: "change",
  summary: "Delete a key",
  description: "The key then verifies as NOT_FOUND. This cannot be undone.",
  permissions: needed,
  errors: ["key_not_found", "managed_elsewhere"],
  body: Body,
  data: Empty,
  handle,
});

async function handle(call: Call<Body, typeof needed>): Promise<z.input<typeof Empty>> {
  const { body, caller, deps } = call;
  const { keyId } = body;
  const { workspaceId } = caller;
  const ref = { workspaceId, keyId };
  await inCreditsTransaction(deps, ref, async (tx, changeCredits) => {
    const key = await lockManaged(tx, MANAGED.key, { workspaceId, which: keyId });
    call.require(needed.deleteKey, key.api_id);
    const removable = {
      ...MANAGED.key,
      remove: async () => {
        // The shared counter is removed in either case; a key that is only marked keeps its remaining credits in its row.
        if (key.remaining !== null) await changeCredits((current) => (body.permanent ? undefined : current));
        if (body.permanent) await purgeKey(tx, ref);
        else await deleteKeyRow(tx, { ...ref, deletedAt: deps.nowMs() });
      },
    };
    await deleteManaged(tx, call, removable, key);
  });
  return {};
}
