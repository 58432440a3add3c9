import { withApi } from "../../api/connection.ts";
import { defineCommand } from "../../command.ts";
import { objectShape } from "../../fields.ts";
import { connection, json } from "../../options.ts";
import { printOne } from "../../output.ts";
import { role, roleFields } from "./fields.ts";

export const roleGet = defineCommand({
  name: "role get",
  description: "Requires rbac.*.read_role.",
  options: { role, ...connection, json },
  response: objectShape(roleFields),
  run: async (options, io) => {
    const body = { role: options.role };
    const { data: row } = await withApi(options, io, (api) => api.call("permissions.getRole", body));
    printOne(io, options, { fields: roleFields, row });
    return 0;
  },
});
