import { changeWorkspace } from "../../../api-server/domain/administration/workspaces.ts";
import { withWorkspace } from "../../administration.ts";
import { defineCommand } from "../../command.ts";
import { objectShape } from "../../fields.ts";
import { database, json, namedWorkspace } from "../../options.ts";
import { printOne } from "../../output.ts";
import { workspaceFields } from "./fields.ts";

export const workspaceEnable = defineCommand({
  name: "workspace enable",
  summary: "undo workspace disable",
  options: { workspace: namedWorkspace, ...database, json },
  answer: objectShape(workspaceFields),
  run: async (options, io) => {
    const row = await withWorkspace(options, (administrator, { id }) =>
      changeWorkspace(administrator, { workspaceId: id, enabled: true }),
    );
    const sentence = `workspace ${row.name} (${row.id}) is enabled`;
    printOne(io, options, { fields: workspaceFields, row, sentence });
    return 0;
  },
});
