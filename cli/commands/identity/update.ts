import { withApi } from "../../api/connection.ts";
import { defineCommand, UsageError } from "../../command.ts";
import { objectShape } from "../../fields.ts";
import { connection, json } from "../../options.ts";
import { printOne } from "../../output.ts";
import { parseJsonObject } from "../../values.ts";
import { parseRatelimit, ratelimit } from "../new-ratelimit.ts";
import { identity, identityFields } from "./fields.ts";

export const identityUpdate = defineCommand({
  name: "identity update",
  description:
    "Each given option replaces its setting completely; other settings stay. Requires identity.*.update_identity.",
  options: {
    identity,
    ratelimit: {
      ...ratelimit,
      help: `new limit, instead of all previous ones; format as in \`postern identity create\``,
    },
    "no-ratelimits": { type: "boolean", help: "remove all limits" },
    meta: { type: "string", placeholder: "JSON", help: "new JSON object; {} removes it" },
    ...connection,
    json,
  },
  response: objectShape(identityFields),
  run: async (options, io) => {
    const { identity: named, ratelimit: limits, "no-ratelimits": none, meta } = options;
    if (none && limits.length > 0) throw new UsageError("--ratelimit and --no-ratelimits exclude each other");
    if (!none && limits.length === 0 && meta === undefined) {
      throw new UsageError("set --ratelimit, --no-ratelimits or --meta");
    }
    const body = {
      identity: named,
      ...(none || limits.length > 0 ? { ratelimits: limits.map(parseRatelimit) } : {}),
      ...(meta === undefined ? {} : { meta: parseJsonObject("meta", meta) }),
    };
    const { data: row } = await withApi(options, io, (api) => api.call("identities.updateIdentity", body));
    printOne(io, options, { fields: identityFields, row });
    return 0;
  },
});
