import { listWorkspaces } from "../../../api-server/db/workspaces.ts";
import { withDatabase } from "../../administration.ts";
import { defineCommand } from "../../command.ts";
import { listShape } from "../../fields.ts";
import { database, json, limit } from "../../options.ts";
import { printList } from "../../output.ts";
import { parseLimit } from "../../values.ts";
import { workspaceFields } from "./fields.ts";

export const workspaceList = defineCommand({
  name: "workspace list",
  options: { limit, ...database, json },
  response: listShape("workspaces", workspaceFields),
  run: async (options, io) => {
    const max = parseLimit(options.limit);
    const rows = await withDatabase(options, ({ db }) => listWorkspaces(db, { rowsMax: max + 1 }));
    printList(io, options, { resources: "workspaces", fields: workspaceFields, rows, max });
    return 0;
  },
});
