import { listMigrations } from "../../../api-server/db/migrations-of-keys.ts";
import { withWorkspace } from "../../administration.ts";
import { defineCommand } from "../../command.ts";
import { listShape } from "../../fields.ts";
import { database, json, limit, workspace } from "../../options.ts";
import { printList } from "../../output.ts";
import { parseLimit } from "../../values.ts";
import { migrationFields } from "./fields.ts";

export const migrationList = defineCommand({
  name: "migration list",
  options: { workspace, limit, ...database, json },
  response: listShape("migrations", migrationFields),
  run: async (options, io) => {
    const max = parseLimit(options.limit);
    const rows = await withWorkspace(options, ({ db }, { id: workspaceId }) =>
      listMigrations(db, { workspaceId, rowsMax: max + 1 }),
    );
    printList(io, options, { resources: "migrations", fields: migrationFields, rows, max });
    return 0;
  },
});
