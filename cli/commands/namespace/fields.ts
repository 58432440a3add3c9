import type { NamespaceRow } from "../../../api-server/db/namespaces.ts";
import { type Fields, instantText } from "../../fields.ts";

export const namespaceFields: Fields<NamespaceRow> = [
  { name: "namespaceId", title: "id", value: (row) => row.id },
  { name: "name", title: "name", value: (row) => row.name, shrinks: true },
  { name: "manager", title: "managed by", value: (row) => row.manager, shrinks: true },
  { name: "createdAt", title: "created", value: (row) => row.created_at, text: (row) => instantText(row.created_at) },
];
