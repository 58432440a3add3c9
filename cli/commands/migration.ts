import { listMigrations, type MigrationRow } from "../../api-server/db/migrations-of-keys.ts";
import { createMigration, MIGRATION_NAME_LENGTH_MAX } from "../../api-server/domain/administration/migrations.ts";
import { MigrationAlgorithm } from "../../core/keys/migration.ts";
import { withWorkspace } from "../administration.ts";
import { defineCommand } from "../command.ts";
import { type Fields, instantText, listShape, objectShape } from "../fields.ts";
import { database, json, limit, workspace } from "../options.ts";
import { printList, printOne } from "../output.ts";
import { invalidValue, parseLimit, parseName } from "../values.ts";

const migrationFields: Fields<MigrationRow> = [
  { name: "migrationId", title: "id", value: (row) => row.id },
  { name: "name", title: "name", value: (row) => row.name, shrinks: true },
  { name: "algorithm", title: "algorithm", value: (row) => row.algorithm },
  { name: "createdAt", title: "created", value: (row) => row.created_at, text: (row) => instantText(row.created_at) },
];

export const migrationCreate = defineCommand({
  name: "migration create",
  description:
    "Its id is the `migrationId` of keys.migrateKeys and keys.verifyKey. `sha256`: hashes of complete keys. `prefixed`: hashes of the part after the last underscore.",
  options: {
    name: {
      type: "string",
      placeholder: "TEXT",
      help: "name, such as the system that issued the keys",
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
