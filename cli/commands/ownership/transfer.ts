import { transferManaged } from "../../../api-server/domain/administration/managed.ts";
import { withWorkspace } from "../../administration.ts";
import { defineCommand, UsageError } from "../../command.ts";
import { listShape } from "../../fields.ts";
import { database, json, workspace } from "../../options.ts";
import { printList } from "../../output.ts";
import { managedFields, parseManager } from "./fields.ts";

export const ownershipTransfer = defineCommand({
  name: "ownership transfer",
  description:
    "Both names must have the same number of parts and the same kind. Compiled policies are not transferred, because each cluster stores its own. Prints the objects as they were before.",
  options: {
    from: {
      type: "string",
      placeholder: "MANAGER",
      help: "manager, CLUSTER/KIND/NAMESPACE/NAME, or a prefix such as CLUSTER",
      required: true,
    },
    to: { type: "string", placeholder: "MANAGER", help: "new manager or prefix", required: true },
    workspace,
    ...database,
    json,
  },
  response: listShape("objects", managedFields),
  run: async (options, io) => {
    const [from, to] = [parseManager("from", options.from), parseManager("to", options.to)];
    const [before, after] = [from.split("/"), to.split("/")];
    if (before.length !== after.length || before[1] !== after[1]) {
      throw new UsageError("--from and --to must have the same number of parts and the same kind");
    }
    const rows = await withWorkspace(options, (administrator, { id: workspaceId }) =>
      transferManaged(administrator, { workspaceId, from, to }),
    );
    printList(io, options, { resources: "objects", fields: managedFields, rows, max: rows.length });
    return 0;
  },
});
