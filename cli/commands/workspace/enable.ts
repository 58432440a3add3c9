import { changeWorkspace } from "../../../api-server/domain/administration/workspaces.ts";
import { withWorkspace } from "../../administration.ts";
import { defineCommand } from "../../command.ts";
import { objectShape } from "../../fields.ts";
import { database, json, namedWorkspace } from "../../options.ts";
import { printOne } from "../../output.ts";
import { workspaceFields } from "./fields.ts";

export const workspaceEnable = defineCommand({
  name: "workspace enable",
  options: { workspace: namedWorkspace, ...database, json },
  response: objectShape(workspaceFields),
  run: async (options, io) => {
    const row = await withWorkspace(options, (administrator, { id }) =>
      changeWorkspace(administrator, { workspaceId: id, enabled: true }),
    );
    const sentence = `workspace ${row.name} (${row.id}) is enabled`;
    printOne(io, options, { fields: workspaceFields, row, sentence });
    return 0;
  },
});

export const workspaceDisable = defineCommand({
  name: "workspace disable",
  description: "Root keys then get 403, keys verify as FORBIDDEN, and gates reject all requests. Nothing is deleted.",
  options: { workspace: namedWorkspace, ...database, json },
  response: objectShape(workspaceFields),
  run: async (options, io) => {
    const row = await withWorkspace(options, (administrator, { id }) =>
      changeWorkspace(administrator, { workspaceId: id, enabled: false }),
    );
    const sentence = `workspace ${row.name} (${row.id}) is disabled: its root keys get 403, its keys verify as FORBIDDEN`;
    printOne(io, options, { fields: workspaceFields, row, sentence });
    return 0;
  },
});
