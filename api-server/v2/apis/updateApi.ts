import * as z from "zod";
import { updateApi as updateApiRow } from "../../db/apis.ts";
import { insertAudit } from "../../db/audit.ts";
import { changeOf } from "../../db/audit-change.ts";
import { inTransaction } from "../../db/transaction.ts";
import { auditEvent, lockManaged } from "../../domain/managed/changes.ts";
import { MANAGED } from "../../domain/managed/resources.ts";
import { adopting, guardManaged } from "../../domain/managed/rules.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { ApiId, Empty } from "../schemas.ts";

const Body = z.strictObject({
  apiId: ApiId,
  name: z
    .string()
    .min(3)
    .max(256)
    .optional()
    .describe("New name. If omitted, the name does not change.")
    .meta({ examples: ["orders"] }),
});
type Body = z.output<typeof Body>;

const required = { updateApi: onApi("update_api") };

export const updateApi = defineProcedure({
  path: "apis.updateApi",
  effect: "change",
  summary: "Change an API",
  description: "Changes the name. With `Postern-Adopt: true` an unmanaged API becomes managed by the caller.",
  permissions: required,
  errors: ["api_not_found", "managed_by_manifest", "managed_exists"],
  addition: true,
  body: Body,
  data: Empty,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<z.input<typeof Empty>> {
  const { body, caller, deps } = call;
  const { apiId } = body;
  const { workspaceId } = caller;
  return inTransaction(deps, async (tx) => {
    const api = await lockManaged(tx, MANAGED.api, { workspaceId, which: apiId });
    call.require(required.updateApi, apiId);
    const manager = guardManaged(call, MANAGED.api, api);
    const name = body.name ?? api.name;
    if (name === api.name && manager === api.manager) return {};
    await adopting(call, MANAGED.api, () =>
      updateApiRow(tx, { workspaceId, apiId, name, manager, updatedAt: deps.nowMs() }),
    );
    const change = changeOf({ name: api.name, manager: api.manager }, { name, manager });
    await insertAudit(tx, call, [{ ...auditEvent(MANAGED.api, { id: apiId, name }, "Updated"), ...change }]);
    return {};
  });
}
