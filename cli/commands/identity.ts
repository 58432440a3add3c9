import type { Schema } from "../../core/api/procedures.ts";
import { withApi } from "../api/connection.ts";
import { pagesOf, readPaging } from "../api/pages.ts";
import { defineCommand, UsageError } from "../command.ts";
import { type Fields, objectShape, pagedShape } from "../fields.ts";
import { connection, json, paging } from "../options.ts";
import { printOne, printPages } from "../output.ts";
import { parseJsonObject } from "../values.ts";
import { parseRatelimit, ratelimit, ratelimitText } from "./new-ratelimit.ts";

export const identity = {
  type: "string",
  placeholder: "IDENTITY",
  help: "identity id (id_…) or external id",
  required: true,
} as const;

const identityFields: Fields<Schema<"Identity">> = [
  { name: "identityId", title: "id", value: (row) => row.id },
  { name: "externalId", title: "external id", value: (row) => row.externalId, shrinks: true },
  {
    name: "ratelimits",
    title: "limits",
    value: (row) => row.ratelimits ?? [],
    text: (row) => (row.ratelimits ?? []).map(ratelimitText).join(", ") || "none",
    shrinks: true,
  },
  {
    name: "meta",
    title: "meta",
    value: (row) => row.meta ?? null,
    text: (row) => (row.meta === undefined ? "-" : JSON.stringify(row.meta)),
    shrinks: true,
  },
];

/** Fields of a created or deleted identity; the API returns no other fields. */
const madeIdentityFields: Fields<{ readonly identityId: string; readonly externalId: string }> = [
  { name: "identityId", value: (row) => row.identityId },
  { name: "externalId", value: (row) => row.externalId },
];
const namedIdentityFields: Fields<{ readonly identity: string }> = [{ name: "identity", value: (row) => row.identity }];

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

export const identityUpdate = defineCommand({
  name: "identity update",
  description:
    "Each given option replaces its setting completely; other settings stay. Requires identity.*.update_identity.",
  options: {
    identity,
    ratelimit: {
      ...ratelimit,
      help: `new limit, which replaces all previous ones; format as in \`postern identity create\``,
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
