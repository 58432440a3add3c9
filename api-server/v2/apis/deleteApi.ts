import * as z from "zod";
import { PublicError } from "../../../core/errors.ts";
import { deleteOrRelease } from "../../domain/managed/rules.ts";
import { apiNotFound } from "../../domain/not-found.ts";
import { onApi } from "../../needed-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { deleteApi as deleteApiRow, lockApi, updateApi } from "../../store/apis.ts";
import { insertAudit } from "../../store/audit.ts";
import { inTransaction } from "../../store/transaction.ts";
import { ApiId, Empty } from "../schemas.ts";

const Body = z.strictObject({ apiId: ApiId });
type Body = z.output<typeof Body>;

const needed = { deleteApi: onApi("delete_api") };

export const deleteApi = defineProcedure({
  path: "apis.deleteApi",
  effect: "change",
  summary: "Delete an API",
  description: "Its keys then verify as NOT_FOUND, and cannot be read or changed any more. There is no way back.",
  permissions: needed,
  errors: ["api_not_found", "protected_resource", "managed_elsewhere"],
  body: Body,
  data: Empty,
  handle,
});

async function handle(call: Call<Body, typeof needed>): Promise<z.input<typeof Empty>> {
  const { body, caller, deps } = call;
  const { apiId } = body;
  const { workspaceId } = caller;
  call.require(needed.deleteApi, apiId);
  await inTransaction(deps, async (tx) => {
    const api = await lockApi(tx, { workspaceId, apiId });
    if (api === undefined) throw apiNotFound(apiId);
    const { name } = api;
    const targets = [{ type: "api" as const, id: apiId, name }];
    await deleteOrRelease(call, api, `The API ${apiId}`, {
      remove: async () => {
        if (api.delete_protection) {
          throw new PublicError("protected_resource", `The API ${apiId} has delete protection; switch it off first.`);
        }
        await deleteApiRow(tx, { workspaceId, apiId, deletedAt: deps.nowMs() });
        await insertAudit(tx, call, [{ event: "api.delete", description: `Deleted API ${apiId}`, targets }]);
      },
      release: async () => {
        await updateApi(tx, { workspaceId, apiId, name, manager: null, updatedAt: deps.nowMs() });
        await insertAudit(tx, call, [{ event: "api.update", description: `Released API ${apiId}`, targets }]);
      },
    });
  });
  return {};
}
