import { withApi } from "../../api/connection.ts";
import { pagesOf, readPaging } from "../../api/pages.ts";
import { defineCommand } from "../../command.ts";
import { pagedShape } from "../../fields.ts";
import { connection, json, paging } from "../../options.ts";
import { printPages } from "../../output.ts";
import { keyFields } from "./fields.ts";

export const keyList = defineCommand({
  name: "key list",
  description: "Does not show the keys themselves. Requires read_key and read_api on the API.",
  options: {
    api: { type: "string", placeholder: "ID", help: "API id (api_…)", required: true },
    "external-id": { type: "string", placeholder: "ID", help: "filter by owner" },
    ...paging,
    ...connection,
    json,
  },
  response: pagedShape("keys", keyFields),
  run: async (options, io) => {
    const { api: apiId, "external-id": externalId } = options;
    const body = { apiId, ...(externalId === undefined ? {} : { externalId }) };
    const paged = readPaging(options, "key");
    await withApi(options, io, (api) =>
      printPages(io, options, {
        resources: "keys",
        fields: keyFields,
        pages: pagesOf(api, "apis.listKeys", body, paged),
      }),
    );
    return 0;
  },
});
