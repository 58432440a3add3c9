import { listOwned } from "../../../api-server/db/managed-owners.ts";
import { withWorkspace } from "../../administration.ts";
import { defineCommand } from "../../command.ts";
import { listShape } from "../../fields.ts";
import { database, json, limit, workspace } from "../../options.ts";
import { printList } from "../../output.ts";
import { parseLimit } from "../../values.ts";
import { managedFields, parseManager } from "./fields.ts";

export const ownershipList = defineCommand({
  name: "ownership list",
  options: {
    manager: {
      type: "string",
      placeholder: "MANAGER",
      help: "filter by manager, CLUSTER/KIND/NAMESPACE/NAME, or a prefix such as CLUSTER",
    },
    workspace,
    limit,
    ...database,
    json,
  },
  response: listShape("objects", managedFields),
  run: async (options, io) => {
    const max = parseLimit(options.limit);
    const manager = options.manager === undefined ? "" : parseManager("manager", options.manager);
    const rows = await withWorkspace(options, ({ db }, { id: workspaceId }) =>
      listOwned(db, { workspaceId, manager, rowsMax: max + 1 }),
    );
    printList(io, options, { resources: "objects", fields: managedFields, rows, max });
    return 0;
  },
});
