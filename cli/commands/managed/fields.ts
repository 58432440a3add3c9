import type { OwnedRow } from "../../../api-server/store/managed-owners.ts";
import { type Fields, instantText } from "../../fields.ts";

export const managedFields: Fields<OwnedRow> = [
  { name: "kind", title: "kind", value: (row) => row.kind },
  { name: "id", title: "id", value: (row) => row.id },
  { name: "name", title: "name", value: (row) => row.name, shrinks: true },
  { name: "manager", title: "managed by", value: (row) => row.manager, shrinks: true },
  { name: "lastManager", title: "left by", value: (row) => row.last_manager, shrinks: true },
  {
    name: "releasedAt",
    title: "left",
    value: (row) => row.released_at,
    text: (row) => (row.released_at === null ? "" : instantText(row.released_at)),
  },
];
