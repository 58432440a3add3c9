import { withApi } from "../../api/connection.ts";
import { defineCommand } from "../../command.ts";
import { objectShape } from "../../fields.ts";
import { connection, json } from "../../options.ts";
import { printOne } from "../../output.ts";
import { parseDurationOption, parseInteger } from "../../values.ts";
import { identifier, namespace, overrideFields } from "./fields.ts";

const LIMIT_MAX = Number.MAX_SAFE_INTEGER;

export const overrideSet = defineCommand({
  name: "override set",
  description: "Creates or replaces the override. Requires set_override on the namespace.",
  options: {
    namespace,
    identifier,
    limit: { type: "string", placeholder: "N", help: "units per window; 0 rejects every request", required: true },
    duration: { type: "string", placeholder: "DURATION", help: "window: 60s, 1h, 30d", required: true },
    ...connection,
    json,
  },
  response: objectShape(overrideFields),
  run: async (options, io) => {
    const limit = parseInteger("limit", options.limit, { min: 0, max: LIMIT_MAX });
    const duration = parseDurationOption("duration", options.duration, { minMs: 1 });
    const body = { namespace: options.namespace, identifier: options.identifier, limit, duration };
    const { data } = await withApi(options, io, (api) => api.call("ratelimit.setOverride", body));
    const row = { ...data, identifier: options.identifier, limit, duration };
    const sentence = `${row.identifier} may use ${limit} per ${options.duration} in ${options.namespace}: override ${row.overrideId}`;
    printOne(io, options, { fields: overrideFields, row, sentence });
    return 0;
  },
});
