import * as z from "zod";
import { insertAudit } from "../../db/audit.ts";
import { changeOf } from "../../db/audit-change.ts";
import { type PermissionRow, updatePermission as updatePermissionRow } from "../../db/permissions.ts";
import { inTransaction } from "../../db/transaction.ts";
import { auditEvent, lockManaged } from "../../domain/managed/changes.ts";
import { MANAGED } from "../../domain/managed/resources.ts";
import { adopting, guardManaged } from "../../domain/managed/rules.ts";
import { toStoredDescription } from "../../domain/permissions/create-permission.ts";
import { onRbac } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { Empty } from "../schemas.ts";
import { Description, Permission, PermissionName } from "./schemas.ts";

const Body = z.strictObject({
  permission: Permission,
  name: PermissionName.optional().describe("New name. If omitted, the name does not change."),
  description: Description.nullable()
    .optional()
    .describe("New description; null removes it. If omitted, it does not change."),
});
type Body = z.output<typeof Body>;

const required = { updatePermission: onRbac("update_permission") };

export const updatePermission = defineProcedure({
  path: "permissions.updatePermission",
  effect: "change",
  summary: "Change a permission",
  description:
    "Changes the name or description; the slug cannot be changed. With `Postern-Adopt: true`, an unmanaged permission becomes managed by the caller.",
  permissions: required,
  errors: ["permission_not_found", "managed_by_manifest", "managed_exists"],
  addition: true,
  body: Body,
  data: Empty,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<z.input<typeof Empty>> {
  const { body, caller, deps } = call;
  const { workspaceId } = caller;
  call.require(required.updatePermission);
  return inTransaction(deps, async (tx) => {
    const current = await lockManaged(tx, MANAGED.permission, { workspaceId, which: body.permission });
    const requested: PermissionRow = {
      ...current,
      name: body.name ?? current.name,
      description: body.description === undefined ? current.description : toStoredDescription(body.description),
      manager: guardManaged(call, MANAGED.permission, current),
    };
    const isSame =
      requested.name === current.name &&
      requested.description === current.description &&
      requested.manager === current.manager;
    if (isSame) return {};
    await adopting(call, MANAGED.permission, () => updatePermissionRow(tx, { workspaceId, ...requested }));
    const fields = ({ name, description, manager }: PermissionRow) => ({ name, description, manager });
    const change = changeOf(fields(current), fields(requested));
    await insertAudit(tx, call, [{ ...auditEvent(MANAGED.permission, requested, "Updated"), ...change }]);
    return {};
  });
}
