import { revokeRootKey } from "../../../api-server/domain/administration/root-keys.ts";
import { notFound, withWorkspace } from "../../administration.ts";
import { defineCommand } from "../../command.ts";
import { objectShape } from "../../fields.ts";
import { database, json, workspace } from "../../options.ts";
import { printOne } from "../../output.ts";
import { id, rootKeyFields } from "./fields.ts";

export const rootkeyRevoke = defineCommand({
  name: "rootkey revoke",
  description: "An api-server registers the root key in POSTERN_ROOT_KEY at each start: remove it there first.",
  options: { id, workspace, ...database, json },
  response: objectShape(rootKeyFields),
  run: async (options, io) => {
    const { id: rootKeyId } = options;
    const row = await withWorkspace(options, async (administrator, inWorkspace) => {
      const revoked = await revokeRootKey(administrator, { workspaceId: inWorkspace.id, rootKeyId });
      if (revoked === undefined) throw notFound(`root key ${rootKeyId}`, inWorkspace, "rootkey list");
      return revoked;
    });
    const sentence = `root key ${row.id} is revoked: requests with it get 401`;
    printOne(io, options, { fields: rootKeyFields, row, sentence });
    return 0;
  },
});
