import * as z from "zod";
import { inCreditsTransaction } from "../../domain/credits-transaction.ts";
import { deleteOrRelease } from "../../domain/managed/rules.ts";
import { keyNotFound } from "../../domain/not-found.ts";
import { onApi } from "../../needed-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { insertAudit } from "../../store/audit.ts";
import { deleteKey as deleteKeyRow, purgeKey, touchKey } from "../../store/key-changes.ts";
import { lockKey } from "../../store/keys.ts";
import { Empty, KeyId } from "../schemas.ts";

const Body = z.strictObject({
  keyId: KeyId,
  permanent: z
    .boolean()
    .default(false)
    .describe(
      "false: marked deleted, known to analytics and the audit log. true: removed with all that belongs to it.",
    ),
});
type Body = z.output<typeof Body>;

const needed = { deleteKey: onApi("delete_key") };

export const deleteKey = defineProcedure({
  path: "keys.deleteKey",
  effect: "change",
  summary: "Delete a key",
  description: "The key verifies as NOT_FOUND from now on. There is no way back.",
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
    const key = await lockKey(tx, ref);
    if (key === undefined) throw keyNotFound(keyId);
    call.require(needed.deleteKey, key.api_id);
    const targets = [
      { type: "key" as const, id: keyId, name: key.name ?? undefined },
      { type: "api" as const, id: key.api_id },
    ];
    await deleteOrRelease(call, key, `The key ${keyId}`, {
      remove: async () => {
        // The shared counter goes in either case: what it says is left is kept in the row of a key that is only marked.
        if (key.remaining !== null) await changeCredits((current) => (body.permanent ? undefined : current));
        if (body.permanent) {
          await purgeKey(tx, ref);
        } else {
          await deleteKeyRow(tx, { ...ref, deletedAt: deps.nowMs() });
        }
        await insertAudit(tx, call, [{ event: "key.delete", description: `Deleted key ${keyId}`, targets }]);
      },
      release: async () => {
        await touchKey(tx, { ...ref, manager: null, updatedAt: deps.nowMs() });
        await insertAudit(tx, call, [{ event: "key.update", description: `Released key ${keyId}`, targets }]);
      },
    });
  });
  return {};
}
