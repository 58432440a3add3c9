import type { Data } from "../../../core/api/procedures.ts";
import { withApi } from "../../api/connection.ts";
import { pagesOf, readPaging } from "../../api/pages.ts";
import { defineCommand } from "../../command.ts";
import { type Fields, instantText, pagedShape } from "../../fields.ts";
import { connection, json, paging } from "../../options.ts";
import { printPages } from "../../output.ts";

/** Settings of an API. */
type ApiRow = Omit<Data<"admin.listApis">[number], "keys">;

const onOff = (on: boolean): string => (on ? "on" : "off");

export const apiFields: Fields<ApiRow> = [
  { name: "apiId", title: "id", value: (row) => row.apiId },
  { name: "name", title: "name", value: (row) => row.name, shrinks: true },
  {
    name: "ipAllowList",
    title: "ip allow-list",
    value: (row) => row.ipAllowList ?? [],
    text: (row) => row.ipAllowList?.join(",") || "none",
    shrinks: true,
  },
  {
    name: "deleteProtection",
    title: "delete protection",
    value: (row) => row.deleteProtection,
    text: (row) => onOff(row.deleteProtection),
  },
  {
    name: "defaultPrefix",
    title: "default prefix",
    value: (row) => row.defaultPrefix ?? null,
    text: (row) => row.defaultPrefix ?? "none",
  },
  {
    name: "defaultByteLength",
    title: "default bytes",
    value: (row) => row.defaultByteLength ?? null,
    text: (row) => String(row.defaultByteLength ?? "none"),
  },
  {
    name: "keyEncryption",
    title: "key encryption",
    value: (row) => row.keyEncryption,
    text: (row) => onOff(row.keyEncryption),
  },
  { name: "manager", title: "managed by", value: (row) => row.manager ?? null, shrinks: true },
  { name: "createdAt", title: "created", value: (row) => row.createdAt, text: (row) => instantText(row.createdAt) },
];

export const apiList = defineCommand({
  name: "api list",
  description: "Lists the APIs for which the root key has read_api.",
  options: { ...paging, ...connection, json },
  response: pagedShape("apis", apiFields),
  run: async (options, io) => {
    const paged = readPaging(options, "api");
    await withApi(options, io, (api) => {
      const pages = pagesOf(api, "admin.listApis", {}, paged);
      return printPages(io, options, { resources: "apis", fields: apiFields, pages });
    });
    return 0;
  },
});
