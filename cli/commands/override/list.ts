import { withApi } from "../../api/connection.ts";
import { pagesOf, readPaging } from "../../api/pages.ts";
import { defineCommand } from "../../command.ts";
import { pagedShape } from "../../fields.ts";
import { connection, json, paging } from "../../options.ts";
import { printPages } from "../../output.ts";
import { namespace, overrideFields } from "./fields.ts";

export const overrideList = defineCommand({
  name: "override list",
  description: "Requires read_override on the namespace.",
  options: { namespace, ...paging, ...connection, json },
  response: pagedShape("overrides", overrideFields),
  run: async (options, io) => {
    const body = { namespace: options.namespace };
    const paged = readPaging(options, "override");
    await withApi(options, io, (api) => {
      const pages = pagesOf(api, "ratelimit.listOverrides", body, paged);
      return printPages(io, options, { resources: "overrides", fields: overrideFields, pages });
    });
    return 0;
  },
});
