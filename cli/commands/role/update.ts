import { withApi } from "../../api/connection.ts";
import { defineCommand, UsageError } from "../../command.ts";
import { objectShape } from "../../fields.ts";
import { connection, json, permissions } from "../../options.ts";
import { printOne } from "../../output.ts";
import { role, roleFields } from "./fields.ts";

export const roleUpdate = defineCommand({
  name: "role update",
  description:
    "Fails without a change if the role changes concurrently. Requires rbac.*.read_role, rbac.*.add_permission_to_role and rbac.*.remove_permission_from_role, and for a missing permission rbac.*.create_permission.",
  options: {
    role,
    permissions: { ...permissions, help: "new list of permissions" },
    "no-permissions": { type: "boolean", help: "remove all permissions" },
    ...connection,
    json,
  },
  response: objectShape(roleFields),
  run: async (options, io) => {
    const { role: named, permissions: wanted, "no-permissions": none } = options;
    if (none === wanted.length > 0) throw new UsageError("set --permissions or --no-permissions");
    const row = await withApi(options, io, async (api) => {
      const { data: before } = await api.call("permissions.getRole", { role: named });
      const expected = (before.permissions ?? []).map(({ slug }) => slug);
      const body = { roleId: before.id, permissions: [...wanted], expected };
      return { ...before, permissions: (await api.call("permissions.setRolePermissions", body)).data };
    });
    printOne(io, options, { fields: roleFields, row });
    return 0;
  },
});
