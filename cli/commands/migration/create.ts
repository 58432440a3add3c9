import { createMigration, MIGRATION_NAME_LENGTH_MAX } from "../../../api-server/domain/administration/migrations.ts";
import { MigrationAlgorithm } from "../../../core/keys/migration.ts";
import { withWorkspace } from "../../administration.ts";
import { defineCommand } from "../../command.ts";
import { objectShape } from "../../fields.ts";
import { database, json, workspace } from "../../options.ts";
import { printOne } from "../../output.ts";
import { invalidValue, parseName } from "../../values.ts";
import { migrationFields } from "./fields.ts";

export const migrationCreate = defineCommand({
  name: "migration create",
  description:
    "Its id is the `migrationId` of keys.migrateKeys and keys.verifyKey. `sha256`: hashes of complete keys. `prefixed`: hashes of the part after the last underscore.",
  options: {
    name: {
      type: "string",
      placeholder: "TEXT",
      help: "name, such as the source of the keys",
      required: true,
    },
    algorithm: {
      type: "string",
      placeholder: MigrationAlgorithm.options.join("|"),
      help: "hash algorithm of the imported keys",
      required: true,
    },
    workspace,
    ...database,
    json,
  },
  response: objectShape(migrationFields),
  run: async (options, io) => {
    const name = parseName("name", options.name, { lengthMax: MIGRATION_NAME_LENGTH_MAX });
    const algorithm = MigrationAlgorithm.safeParse(options.algorithm);
    if (!algorithm.success) {
      throw invalidValue("algorithm", options.algorithm, MigrationAlgorithm.options.join(" or "));
    }
    const row = await withWorkspace(options, (administrator, { id: workspaceId }) =>
      createMigration(administrator, { workspaceId, name, algorithm: algorithm.data }),
    );
    printOne(io, options, { fields: migrationFields, row });
    return 0;
  },
});
