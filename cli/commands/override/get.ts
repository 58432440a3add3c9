import { withApi } from "../../api/connection.ts";
import { defineCommand } from "../../command.ts";
import { objectShape } from "../../fields.ts";
import { connection, json } from "../../options.ts";
import { printOne } from "../../output.ts";
import { identifier, namespace, overrideFields } from "./fields.ts";

export const overrideGet = defineCommand({
  name: "override get",
  description: "Shows the exact match, otherwise the matching pattern. Requires read_override on the namespace.",
  options: { namespace, identifier, ...connection, json },
  response: objectShape(overrideFields),
  run: async (options, io) => {
    const body = { namespace: options.namespace, identifier: options.identifier };
    const { data: row } = await withApi(options, io, (api) => api.call("ratelimit.getOverride", body));
    printOne(io, options, { fields: overrideFields, row });
    return 0;
  },
});
