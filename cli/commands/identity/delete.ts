import { withApi } from "../../api/connection.ts";
import { defineCommand } from "../../command.ts";
import { objectShape } from "../../fields.ts";
import { connection, json } from "../../options.ts";
import { printOne } from "../../output.ts";
import { identity, namedIdentityFields } from "./fields.ts";

export const identityDelete = defineCommand({
  name: "identity delete",
  description: "Requires identity.*.delete_identity.",
  options: { identity, ...connection, json },
  response: objectShape(namedIdentityFields),
  run: async (options, io) => {
    const row = { identity: options.identity };
    await withApi(options, io, (api) => api.call("identities.deleteIdentity", row));
    printOne(io, options, { fields: namedIdentityFields, row, sentence: `identity ${row.identity} is deleted` });
    return 0;
  },
});
