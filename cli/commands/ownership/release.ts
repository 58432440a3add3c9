import { releaseManaged } from "../../../api-server/domain/administration/managed.ts";
import { withWorkspace } from "../../administration.ts";
import { defineCommand } from "../../command.ts";
import { listShape } from "../../fields.ts";
import { database, json, workspace } from "../../options.ts";
import { printList } from "../../output.ts";
import { managedFields, parseManager } from "./fields.ts";

export const ownershipRelease = defineCommand({
  name: "ownership release",
  summary: "free what a manifest manages or left, so that another one may adopt it",
  description:
    "For manifests that are gone. What is freed stays in the store, and no manifest gets it without spec.adopt. Prints what was freed, as it was before.",
  options: {
    manager: {
      type: "string",
      placeholder: "MANAGER",
      help: "CLUSTER/KIND/NAMESPACE/NAME, or the beginning of several, such as CLUSTER",
      required: true,
    },
    workspace,
    ...database,
    json,
  },
  response: listShape("objects", managedFields),
  run: async (options, io) => {
    const manager = parseManager("manager", options.manager);
    const rows = await withWorkspace(options, (administrator, { id: workspaceId }) =>
      releaseManaged(administrator, { workspaceId, manager }),
    );
    printList(io, options, { resources: "objects", fields: managedFields, rows, max: rows.length });
    return 0;
  },
});
