import { withApi } from "../../api/connection.ts";
import { defineCommand } from "../../command.ts";
import { objectShape } from "../../fields.ts";
import { connection, json, permissions } from "../../options.ts";
import { printOne } from "../../output.ts";
import { madeRoleFields } from "./fields.ts";

export const roleCreate = defineCommand({
  name: "role create",
  description:
    "Creates missing permissions; this requires rbac.*.create_permission. Requires rbac.*.create_role, and with --permissions rbac.*.add_permission_to_role.",
  options: {
    name: { type: "string", placeholder: "NAME", help: "name, referenced by keys", required: true },
    description: { type: "string", placeholder: "TEXT", help: "description" },
    permissions: { ...permissions, help: "permissions to grant" },
    ...connection,
    json,
  },
  response: objectShape(madeRoleFields),
  run: async (options, io) => {
    const { name, description } = options;
    const body = {
      name,
      ...(description === undefined ? {} : { description }),
      ...(options.permissions.length === 0 ? {} : { permissions: [...options.permissions] }),
    };
    const { data } = await withApi(options, io, (api) => api.call("permissions.createRole", body));
    const row = { roleId: data.roleId, name };
    printOne(io, options, { fields: madeRoleFields, row, sentence: `role ${row.roleId} is created` });
    return 0;
  },
});
