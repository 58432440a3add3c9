import type { Schema } from "../../core/api/procedures.ts";
import { formatDuration } from "../../core/manifests/from-store/format-duration.ts";
import { withApi } from "../api/connection.ts";
import { pagesOf, readPaging } from "../api/pages.ts";
import { defineCommand } from "../command.ts";
import { type Fields, objectShape, pagedShape } from "../fields.ts";
import { connection, json, paging } from "../options.ts";
import { printOne, printPages } from "../output.ts";
import { parseDurationOption, parseInteger } from "../values.ts";

export const namespace = {
  type: "string",
  placeholder: "NAMESPACE",
  help: "rate-limit namespace id (rlns_…) or name",
  required: true,
} as const;

const identifier = {
  type: "string",
  placeholder: "TEXT",
  help: "identifier; * matches any characters",
  required: true,
} as const;

const overrideFields: Fields<Schema<"RatelimitOverride">> = [
  { name: "overrideId", title: "id", value: (row) => row.overrideId, drops: true },
  // The identifier is never shortened, because `override get` and `override delete` take it as an argument.
  { name: "identifier", title: "identifier", value: (row) => row.identifier },
  { name: "limit", title: "limit", value: (row) => row.limit },
  { name: "duration", title: "per", value: (row) => row.duration, text: (row) => formatDuration(row.duration) },
];

interface NamedOverride {
  readonly namespace: string;
  readonly identifier: string;
}

/** Fields of a deleted override; the API returns no other fields. */
const namedOverrideFields: Fields<NamedOverride> = [
  { name: "namespace", value: (row) => row.namespace },
  { name: "identifier", value: (row) => row.identifier },
];

const LIMIT_MAX = Number.MAX_SAFE_INTEGER;

export const overrideSet = defineCommand({
  name: "override set",
  description: "Creates or replaces the override. Requires set_override on the namespace.",
  options: {
    namespace,
    identifier,
    limit: { type: "string", placeholder: "N", help: "units per window; 0 rejects every request", required: true },
    duration: {
      type: "string",
      placeholder: "DURATION",
      help: "window length, such as 60s, 1h or 30d",
      required: true,
    },
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
