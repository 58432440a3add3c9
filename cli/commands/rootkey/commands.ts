import type { Data, Schema } from "../../../core/api/procedures.ts";
import { utcDate } from "../../../core/utc-date.ts";
import { withApi } from "../../api/connection.ts";
import { pagesOf, readPaging } from "../../api/pages.ts";
import { defineCommand } from "../../command.ts";
import { type Fields, instantText, objectShape, pagedShape } from "../../fields.ts";
import { connection, json, paging } from "../../options.ts";
import { printOne, printPages } from "../../output.ts";
import { parseFuture, parseInstant } from "../../values.ts";

/* Commands for the root keys of a workspace. They call the API with a root key of that workspace; `create.ts` creates the first one. */

type RootKey = Schema<"RootKey">;

const id = { type: "string", placeholder: "ID", help: "root key id (rk_…)", required: true } as const;

/** Maximum number of permissions that a table cell lists. If there are more, the cell shows only their number. */
const NAMED_MAX = 2;

/** Fields of a root key without its secret. */
const rootKeyFields: Fields<RootKey> = [
  { name: "rootKeyId", title: "id", value: (row) => row.rootKeyId },
  { name: "name", title: "name", value: (row) => row.name ?? null, shrinks: true },
  { name: "environment", title: "environment", value: (row) => row.environment ?? null, shrinks: true },
  { name: "start", title: "start", value: (row) => row.start, text: (row) => `${row.start}…` },
  { name: "permissions", title: "permissions", value: (row) => row.permissions, text: permissionsText, shrinks: true },
  { name: "state", title: "state", value: (row) => row.state },
  { name: "enabled", value: (row) => row.enabled },
  {
    name: "expires",
    title: "expires",
    value: (row) => row.expires ?? null,
    text: (row) => instantText(row.expires ?? null, "never"),
  },
  { name: "successorId", value: (row) => row.successorId ?? null },
  { name: "v1UsedOn", value: (row) => row.v1UsedOn ?? null },
  { name: "createdAt", title: "created", value: (row) => row.createdAt, text: (row) => instantText(row.createdAt) },
];

function permissionsText({ permissions }: RootKey): string {
  return permissions.length > NAMED_MAX ? `${permissions.length} permissions` : permissions.join(", ");
}

export const rootkeyList = defineCommand({
  name: "rootkey list",
  description: "Omits revoked root keys. The keys themselves are not stored. Requires workspace.*.read_root_key.",
  options: {
    "v1-since": {
      type: "string",
      placeholder: "TIME",
      help: "only root keys that called API v1 since a UTC day, such as 2026-12-31 or 30d",
    },
    ...paging,
    ...connection,
    json,
  },
  response: pagedShape("rootKeys", rootKeyFields),
  run: async (options, io) => {
    const since = options["v1-since"];
    const body =
      since === undefined
        ? {}
        : { v1UsedSince: utcDate(parseInstant("v1-since", since, { nowMs: Date.now(), spans: "back" })) };
    const paged = readPaging(options, "rootKey");
    await withApi(options, io, (api) => {
      const pages = pagesOf(api, "admin.listRootKeys", body, paged);
      return printPages(io, options, { resources: "rootKeys", fields: rootKeyFields, pages });
    });
    return 0;
  },
});

/** Permissions that an update may require, as listed in the help. */
const UPDATE = "Requires workspace.*.update_root_key";

const switching = (verb: "enable" | "disable") =>
  defineCommand({
    name: `rootkey ${verb}`,
    description: `${UPDATE}${verb === "enable" ? ", and the permissions of the root key" : ""}.`,
    options: { id, ...connection, json },
    response: objectShape(rootKeyFields),
    run: async (options, io) => {
      const body = { rootKeyId: options.id, enabled: verb === "enable" };
      const { data: row } = await withApi(options, io, (api) => api.call("admin.updateRootKey", body));
      const effect = verb === "enable" ? "" : ": requests with it get 401";
      printOne(io, options, { fields: rootKeyFields, row, sentence: `root key ${options.id} is ${verb}d${effect}` });
      return 0;
    },
  });

export const rootkeyEnable = switching("enable");
export const rootkeyDisable = switching("disable");

export const rootkeyUpdate = defineCommand({
  name: "rootkey update",
  description: `${UPDATE}, and for a later expiry the permissions of the root key.`,
  options: {
    id,
    expires: {
      type: "string",
      placeholder: "TIME|never",
      help: "expiry, such as 2026-12-31 or 30d; a past time expires it immediately",
      required: true,
    },
    ...connection,
    json,
  },
  response: objectShape(rootKeyFields),
  run: async (options, io) => {
    const { id: rootKeyId, expires: time } = options;
    const how = { nowMs: Date.now(), spans: "ahead", or: "never" } as const;
    const body = { rootKeyId, expires: time === "never" ? null : parseInstant("expires", time, how) };
    const { data: row } = await withApi(options, io, (api) => api.call("admin.updateRootKey", body));
    const sentence = `root key ${rootKeyId} expires: ${instantText(row.expires ?? null, "never")}`;
    printOne(io, options, { fields: rootKeyFields, row, sentence });
    return 0;
  },
});

/** Fields of a successor, whose secret is shown only once. */
const successorFields: Fields<Data<"admin.rotateRootKey">> = [
  { name: "rootKeyId", title: "id", value: (row) => row.rootKeyId },
  {
    name: "rootKey",
    title: "root key",
    value: (row) => row.rootKey,
    text: (row) => `${row.rootKey}   (shown only once)`,
  },
  {
    name: "expires",
    title: "expires",
    value: (row) => row.expires ?? null,
    text: (row) => instantText(row.expires ?? null, "never"),
  },
  { name: "predecessorExpiresAt", value: (row) => row.predecessorExpiresAt },
];

export const rootkeyRotate = defineCommand({
  name: "rootkey rotate",
  description:
    "The successor has the same name, environment, permissions and lifetime, and is shown once. Both root keys are valid until the old one expires. Requires workspace.*.create_root_key, workspace.*.update_root_key and the permissions of the root key.",
  options: {
    id,
    until: {
      type: "string",
      placeholder: "TIME|now",
      help: "expiry of the old root key, such as 24h or 2026-12-31; up to 90 days ahead",
      default: "24h",
    },
    ...connection,
    json,
  },
  response: objectShape(successorFields),
  run: async (options, io) => {
    const { id: rootKeyId, until } = options;
    const nowMs = Date.now();
    const untilMs = until === "now" ? nowMs : parseFuture("until", until, { nowMs, or: "now" });
    const body = { rootKeyId, overlap: Math.max(0, untilMs - nowMs) };
    const { data: row } = await withApi(options, io, (api) => api.call("admin.rotateRootKey", body));
    printOne(io, options, { fields: successorFields, row });
    if (!options.json) io.note(`root key ${rootKeyId} expires: ${instantText(row.predecessorExpiresAt)}`);
    return 0;
  },
});

const revokedFields: Fields<{ readonly rootKeyId: string }> = [{ name: "rootKeyId", value: (row) => row.rootKeyId }];

export const rootkeyRevoke = defineCommand({
  name: "rootkey revoke",
  description:
    "An api-server registers the root key in POSTERN_ROOT_KEY at each start: remove it there first. Requires workspace.*.delete_root_key.",
  options: { id, ...connection, json },
  response: objectShape(revokedFields),
  run: async (options, io) => {
    const row = { rootKeyId: options.id };
    await withApi(options, io, (api) => api.call("admin.deleteRootKey", row));
    const sentence = `root key ${row.rootKeyId} is revoked: requests with it get 401`;
    printOne(io, options, { fields: revokedFields, row, sentence });
    return 0;
  },
});
