import { listRootKeys } from "../../../api-server/store/root-keys.ts";
import { withWorkspace } from "../../administration.ts";
import { defineCommand } from "../../command.ts";
import { listShape } from "../../fields.ts";
import { database, json, limit, workspace } from "../../options.ts";
import { printList } from "../../output.ts";
import { parseLimit } from "../../values.ts";
import { rootKeyFields } from "./fields.ts";

export const rootkeyList = defineCommand({
  name: "rootkey list",
  summary: "list the root keys of a workspace, oldest first",
  description: "Without revoked ones. The keys themselves are not stored, so no list can show them.",
  options: { workspace, limit, ...database, json },
  answer: listShape("rootKeys", rootKeyFields),
  run: async (options, io) => {
    const max = parseLimit(options.limit);
    const rows = await withWorkspace(options, ({ db }, { id: workspaceId }) =>
      listRootKeys(db, { workspaceId, rowsMax: max + 1 }),
    );
    printList(io, options, { things: "rootKeys", fields: rootKeyFields, rows, max });
    return 0;
  },
});
