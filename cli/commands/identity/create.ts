import { withApi } from "../../api/connection.ts";
import { defineCommand } from "../../command.ts";
import { objectShape } from "../../fields.ts";
import { connection, json } from "../../options.ts";
import { printOne } from "../../output.ts";
import { parseJsonObject } from "../../values.ts";
import { parseRatelimit, ratelimit } from "../new-ratelimit.ts";
import { madeIdentityFields } from "./fields.ts";

export const identityCreate = defineCommand({
  name: "identity create",
  description: "Requires identity.*.create_identity.",
  options: {
    "external-id": { type: "string", placeholder: "ID", help: "id of the owner in your system", required: true },
    ratelimit,
    meta: { type: "string", placeholder: "JSON", help: "JSON object that each verification returns" },
    ...connection,
    json,
  },
  response: objectShape(madeIdentityFields),
  run: async (options, io) => {
    const { "external-id": externalId, ratelimit: limits, meta } = options;
    const body = {
      externalId,
      ...(limits.length === 0 ? {} : { ratelimits: limits.map(parseRatelimit) }),
      ...(meta === undefined ? {} : { meta: parseJsonObject("meta", meta) }),
    };
    const { data } = await withApi(options, io, (api) => api.call("identities.createIdentity", body));
    const row = { identityId: data.identityId, externalId };
    printOne(io, options, { fields: madeIdentityFields, row, sentence: `identity ${row.identityId} is created` });
    return 0;
  },
});
