import { listNamespaces } from "../../../api-server/db/namespaces.ts";
import { withWorkspace } from "../../administration.ts";
import { defineCommand } from "../../command.ts";
import { listShape } from "../../fields.ts";
import { database, json, limit, workspace } from "../../options.ts";
import { printList } from "../../output.ts";
import { parseLimit } from "../../values.ts";
import { namespaceFields } from "./fields.ts";

export const namespaceList = defineCommand({
  name: "namespace list",
  options: {
    search: { type: "string", placeholder: "TEXT", help: "filter by a part of the id or name", default: "" },
    workspace,
    limit,
    ...database,
    json,
  },
  response: listShape("namespaces", namespaceFields),
  run: async (options, io) => {
    const max = parseLimit(options.limit);
    const { search } = options;
    const rows = await withWorkspace(options, ({ db }, { id: workspaceId }) =>
      listNamespaces(db, { workspaceId, cursor: "", search, rowsMax: max + 1 }),
    );
    printList(io, options, { resources: "namespaces", fields: namespaceFields, rows, max });
    return 0;
  },
});
