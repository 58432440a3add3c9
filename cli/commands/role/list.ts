import { withApi } from "../../api/connection.ts";
import { pagesOf, readPaging } from "../../api/pages.ts";
import { defineCommand } from "../../command.ts";
import { pagedShape } from "../../fields.ts";
import { connection, json, paging } from "../../options.ts";
import { printPages } from "../../output.ts";
import { roleFields } from "./fields.ts";

export const roleList = defineCommand({
  name: "role list",
  description: "Requires rbac.*.read_role.",
  options: {
    search: { type: "string", placeholder: "TEXT", help: "filter by a part of the id, name or description" },
    ...paging,
    ...connection,
    json,
  },
  response: pagedShape("roles", roleFields),
  run: async (options, io) => {
    const { search } = options;
    const body = search === undefined ? {} : { search };
    const paged = readPaging(options, "role");
    await withApi(options, io, (api) => {
      const pages = pagesOf(api, "permissions.listRoles", body, paged);
      return printPages(io, options, { resources: "roles", fields: roleFields, pages });
    });
    return 0;
  },
});
