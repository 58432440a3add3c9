import { withApi } from "../../api/connection.ts";
import { defineCommand } from "../../command.ts";
import { objectShape } from "../../fields.ts";
import { connection, json } from "../../options.ts";
import { printOne } from "../../output.ts";
import { namedRoleFields, role } from "./fields.ts";

export const roleDelete = defineCommand({
  name: "role delete",
  description: "Requires rbac.*.delete_role.",
  options: {
    role,
    "only-if-unused": { type: "boolean", help: "delete it only if no key has it" },
    ...connection,
    json,
  },
  response: objectShape(namedRoleFields),
  run: async (options, io) => {
    const row = { role: options.role };
    const body = { ...row, ...(options["only-if-unused"] ? { onlyIfUnused: true } : {}) };
    await withApi(options, io, (api) => api.call("permissions.deleteRole", body));
    printOne(io, options, { fields: namedRoleFields, row, sentence: `role ${row.role} is deleted` });
    return 0;
  },
});
