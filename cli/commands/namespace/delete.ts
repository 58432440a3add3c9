import { removeNamespace } from "../../../api-server/domain/administration/namespaces.ts";
import { notFound, withWorkspace } from "../../administration.ts";
import { defineCommand } from "../../command.ts";
import { objectShape } from "../../fields.ts";
import { database, json, workspace } from "../../options.ts";
import { printOne } from "../../output.ts";
import { namespaceFields } from "./fields.ts";

export const namespaceDelete = defineCommand({
  name: "namespace delete",
  description:
    "Limit calls then get 410, until `ratelimit.createNamespace` creates it again. A namespace that a manifest manages is rejected: edit the manifest.",
  options: {
    namespace: { type: "string", placeholder: "NAMESPACE", help: "namespace id or name", required: true },
    workspace,
    ...database,
    json,
  },
  response: objectShape(namespaceFields),
  run: async (options, io) => {
    const { namespace } = options;
    const row = await withWorkspace(options, async (administrator, inWorkspace) => {
      const removed = await removeNamespace(administrator, { workspaceId: inWorkspace.id, namespace });
      if (removed === undefined) throw notFound(`rate-limit namespace ${namespace}`, inWorkspace, "namespace list");
      return removed;
    });
    const sentence = `rate-limit namespace ${row.id} is deleted, with its overrides`;
    printOne(io, options, { fields: namespaceFields, row, sentence });
    return 0;
  },
});
