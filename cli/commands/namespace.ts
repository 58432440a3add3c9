import type { Data } from "../../core/api/procedures.ts";
import { withApi } from "../api/connection.ts";
import { pagesOf, readPaging } from "../api/pages.ts";
import { defineCommand } from "../command.ts";
import { type Fields, instantText, objectShape, pagedShape } from "../fields.ts";
import { connection, json, paging } from "../options.ts";
import { printOne, printPages } from "../output.ts";

const namespaceFields: Fields<Data<"admin.listNamespaces">[number]> = [
  { name: "namespaceId", title: "id", value: (row) => row.id },
  { name: "name", title: "name", value: (row) => row.name, shrinks: true },
  { name: "manager", title: "managed by", value: (row) => row.manager ?? null, shrinks: true },
  { name: "createdAt", title: "created", value: (row) => row.createdAt, text: (row) => instantText(row.createdAt) },
];

export const namespaceList = defineCommand({
  name: "namespace list",
  description: "Requires ratelimit.*.read_namespace.",
  options: {
    search: { type: "string", placeholder: "TEXT", help: "filter by a part of the id or name" },
    ...paging,
    ...connection,
    json,
  },
  response: pagedShape("namespaces", namespaceFields),
  run: async (options, io) => {
    const { search } = options;
    const body = search === undefined ? {} : { search };
    const paged = readPaging(options);
    await withApi(options, io, (api) => {
      const pages = pagesOf(api, "admin.listNamespaces", body, paged);
      return printPages(io, options, { resources: "namespaces", fields: namespaceFields, pages });
    });
    return 0;
  },
});

const deletedFields: Fields<{ readonly namespace: string }> = [{ name: "namespace", value: (row) => row.namespace }];

export const namespaceDelete = defineCommand({
  name: "namespace delete",
  description:
    "Limit calls then get 410, until `ratelimit.createNamespace` creates it again. Fails for a manifest-managed namespace: edit its manifest. Requires delete_namespace on the namespace.",
  options: {
    namespace: { type: "string", placeholder: "NAMESPACE", help: "namespace id or name", required: true },
    ...connection,
    json,
  },
  response: objectShape(deletedFields),
  run: async (options, io) => {
    const row = { namespace: options.namespace };
    await withApi(options, io, (api) => api.call("ratelimit.deleteNamespace", row));
    const sentence = `rate-limit namespace ${row.namespace} is deleted, with its overrides`;
    printOne(io, options, { fields: deletedFields, row, sentence });
    return 0;
  },
});
