import { listApiSettings } from "../../../api-server/db/apis.ts";
import { withWorkspace } from "../../administration.ts";
import { defineCommand } from "../../command.ts";
import { listShape } from "../../fields.ts";
import { database, json, limit, workspace } from "../../options.ts";
import { printList } from "../../output.ts";
import { parseLimit } from "../../values.ts";
import { apiFields } from "./fields.ts";

export const apiList = defineCommand({
  name: "api list",
  options: { workspace, limit, ...database, json },
  response: listShape("apis", apiFields),
  run: async (options, io) => {
    const max = parseLimit(options.limit);
    const rows = await withWorkspace(options, ({ db }, { id: workspaceId }) =>
      listApiSettings(db, { workspaceId, rowsMax: max + 1 }),
    );
    printList(io, options, { resources: "apis", fields: apiFields, rows, max });
    return 0;
  },
});
