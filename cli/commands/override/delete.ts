import { withApi } from "../../api/connection.ts";
import { defineCommand } from "../../command.ts";
import { objectShape } from "../../fields.ts";
import { connection, json } from "../../options.ts";
import { printOne } from "../../output.ts";
import { identifier, namedOverrideFields, namespace } from "./fields.ts";

export const overrideDelete = defineCommand({
  name: "override delete",
  description: "Requires delete_override on the namespace.",
  options: { namespace, identifier, ...connection, json },
  response: objectShape(namedOverrideFields),
  run: async (options, io) => {
    const row = { namespace: options.namespace, identifier: options.identifier };
    await withApi(options, io, (api) => api.call("ratelimit.deleteOverride", row));
    const sentence = `the override of ${row.identifier} in ${row.namespace} is deleted`;
    printOne(io, options, { fields: namedOverrideFields, row, sentence });
    return 0;
  },
});
