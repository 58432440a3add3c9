import type { MigrationRow } from "../../../api-server/db/migrations-of-keys.ts";
import { type Fields, instantText } from "../../fields.ts";

export const migrationFields: Fields<MigrationRow> = [
  { name: "migrationId", title: "id", value: (row) => row.id },
  { name: "name", title: "name", value: (row) => row.name, shrinks: true },
  { name: "algorithm", title: "algorithm", value: (row) => row.algorithm },
  { name: "createdAt", title: "created", value: (row) => row.created_at, text: (row) => instantText(row.created_at) },
];
