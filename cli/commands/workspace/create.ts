import { createWorkspace } from "../../../api-server/domain/administration/workspaces.ts";
import { workspaceNameProblem } from "../../../core/workspaces/workspace.ts";
import { withDatabase } from "../../administration.ts";
import { defineCommand, UsageError } from "../../command.ts";
import { objectShape } from "../../fields.ts";
import { database, json } from "../../options.ts";
import { printOne } from "../../output.ts";
import { parseQuota, quotaPerMinute, workspaceFields } from "./fields.ts";

export const workspaceCreate = defineCommand({
  name: "workspace create",
  description: "Workspaces are isolated from each other. Create the first root key with `rootkey create`.",
  options: {
    name: { type: "string", placeholder: "NAME", help: "unique name", required: true },
    "per-minute": { ...quotaPerMinute, default: "none" },
    ...database,
    json,
  },
  response: objectShape(workspaceFields),
  run: async (options, io) => {
    const { name } = options;
    const problem = workspaceNameProblem(name);
    if (problem !== undefined) throw new UsageError(`--name: ${problem}`);
    const quota = parseQuota(options["per-minute"]);
    const row = await withDatabase(options, (administrator) =>
      createWorkspace(administrator, { name, quotaPerMinute: quota }),
    );
    if (row === undefined) throw new Error(`workspace ${name} already exists; set another --name`);
    printOne(io, options, { fields: workspaceFields, row });
    return 0;
  },
});
