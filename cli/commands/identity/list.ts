import { withApi } from "../../api/connection.ts";
import { pagesOf, readPaging } from "../../api/pages.ts";
import { defineCommand } from "../../command.ts";
import { pagedShape } from "../../fields.ts";
import { connection, json, paging } from "../../options.ts";
import { printPages } from "../../output.ts";
import { identityFields } from "./fields.ts";

export const identityList = defineCommand({
  name: "identity list",
  description: "Requires identity.*.read_identity.",
  options: {
    search: { type: "string", placeholder: "TEXT", help: "filter by a part of the id or external id" },
    ...paging,
    ...connection,
    json,
  },
  response: pagedShape("identities", identityFields),
  run: async (options, io) => {
    const { search } = options;
    const body = search === undefined ? {} : { search };
    const paged = readPaging(options, "identity");
    await withApi(options, io, (api) => {
      const pages = pagesOf(api, "identities.listIdentities", body, paged);
      return printPages(io, options, { resources: "identities", fields: identityFields, pages });
    });
    return 0;
  },
});
