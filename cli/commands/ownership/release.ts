import { releaseManaged } from "../../../api-server/domain/administration/managed.ts";
import { withWorkspace } from "../../administration.ts";
import { defineCommand } from "../../command.ts";
import { listShape } from "../../fields.ts";
import { database, json, workspace } from "../../options.ts";
import { printList } from "../../output.ts";
import { managedFields, parseManager } from "./fields.ts";

export const ownershipRelease = defineCommand({
  name: "ownership release",
  description:
    "For manifests that were deleted. Released objects stay in the database; a manifest needs spec.adopt to manage them. Prints the objects as they were before.",
  options: {
    manager: {
      type: "string",
      placeholder: "MANAGER",
      help: "manager, CLUSTER/KIND/NAMESPACE/NAME, or a prefix such as CLUSTER",
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
