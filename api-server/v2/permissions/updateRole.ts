import * as z from "zod";
import { PublicError } from "../../../core/errors.ts";
import { isUniqueViolation } from "../../../postgres/failures.ts";
import { insertAudit } from "../../db/audit.ts";
import { changeOf } from "../../db/audit-change.ts";
import { type RoleRow, updateRole as updateRoleRow } from "../../db/roles.ts";
import { inTransaction } from "../../db/transaction.ts";
import { auditEvent, lockManaged } from "../../domain/managed/changes.ts";
import { MANAGED } from "../../domain/managed/resources.ts";
import { adopting, guardManaged } from "../../domain/managed/rules.ts";
import { toStoredDescription } from "../../domain/permissions/create-permission.ts";
import { onRbac } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { Empty } from "../schemas.ts";
import { Description, NewRoleName, Role } from "./schemas.ts";

const Body = z.strictObject({
  role: Role,
  name: NewRoleName.optional().describe("New name. If omitted, the name does not change."),
  description: Description.nullable()
    .optional()
    .describe("New description; null removes it. If omitted, it does not change."),
});
type Body = z.output<typeof Body>;

const required = { updateRole: onRbac("update_role") };

export const updateRole = defineProcedure({
  path: "permissions.updateRole",
  effect: "change",
  summary: "Change a role",
  description:
    "Changes name or description. With `Postern-Adopt: true` an unmanaged role becomes managed by the caller.",
  permissions: required,
  errors: ["role_not_found", "role_already_exists", "managed_by_manifest", "managed_exists"],
  addition: true,
  body: Body,
  data: Empty,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<z.input<typeof Empty>> {
  const { body, caller, deps } = call;
  const { workspaceId } = caller;
  return inTransaction(deps, async (tx) => {
    const current = await lockManaged(tx, MANAGED.role, { workspaceId, which: body.role });
    call.require(required.updateRole);
    const requested: RoleRow = {
      id: current.id,
      name: body.name ?? current.name,
      description: body.description === undefined ? current.description : toStoredDescription(body.description),
      manager: guardManaged(call, MANAGED.role, current),
    };
    const isSame =
      requested.name === current.name &&
      requested.description === current.description &&
      requested.manager === current.manager;
    if (isSame) return {};
    await refusingTakenName(requested.name, () =>
      adopting(call, MANAGED.role, () => updateRoleRow(tx, { workspaceId, ...requested })),
    );
    const fields = ({ name, description, manager }: RoleRow) => ({ name, description, manager });
    const change = changeOf(fields(current), fields(requested));
    await insertAudit(tx, call, [{ ...auditEvent(MANAGED.role, requested, "Updated"), ...change }]);
    return {};
  });
}

/** Runs `work`. Throws PublicError 409 instead of the database's error if the name is taken. */
async function refusingTakenName<T>(name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isUniqueViolation(error, "roles_name")) throw error;
    throw new PublicError("role_already_exists", `A role named ${name} already exists.`, { cause: error });
  }
}
