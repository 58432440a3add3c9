import { withApi } from "../../api/connection.ts";
import { defineCommand } from "../../command.ts";
import { objectShape } from "../../fields.ts";
import { connection, json } from "../../options.ts";
import { printOne } from "../../output.ts";
import { identity, identityFields } from "./fields.ts";

export const identityGet = defineCommand({
  name: "identity get",
  description: "Requires identity.*.read_identity.",
  options: { identity, ...connection, json },
  response: objectShape(identityFields),
  run: async (options, io) => {
    const body = { identity: options.identity };
    const { data: row } = await withApi(options, io, (api) => api.call("identities.getIdentity", body));
    printOne(io, options, { fields: identityFields, row });
    return 0;
  },
});
