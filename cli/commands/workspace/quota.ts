import { changeWorkspace } from "../../../api-server/domain/administration/workspaces.ts";
import { withWorkspace } from "../../administration.ts";
import { defineCommand } from "../../command.ts";
import { objectShape } from "../../fields.ts";
import { database, json, namedWorkspace } from "../../options.ts";
import { printOne } from "../../output.ts";
import { parseQuota, quotaPerMinute, quotaText, workspaceFields } from "./fields.ts";

export const workspaceQuota = defineCommand({
  name: "workspace quota",
  summary: "limit the requests per minute that a workspace may send to the API",
  description:
    "Requests beyond it get 429. Requests to apps behind a sidecar do not count: policies and keys limit those.",
  options: {
    workspace: namedWorkspace,
    "per-minute": { ...quotaPerMinute, required: true },
    ...database,
    json,
  },
  response: objectShape(workspaceFields),
  run: async (options, io) => {
    const quota = parseQuota(options["per-minute"]);
    const row = await withWorkspace(options, (administrator, { id }) =>
      changeWorkspace(administrator, { workspaceId: id, quotaPerMinute: quota }),
    );
    const sentence = `workspace ${row.name} (${row.id}) has the quota: ${quotaText(row)}`;
    printOne(io, options, { fields: workspaceFields, row, sentence });
    return 0;
  },
});
