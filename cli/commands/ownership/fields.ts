import type { OwnedRow } from "../../../api-server/db/managed-owners.ts";
import { UsageError } from "../../command.ts";
import { type Fields, instantText } from "../../fields.ts";

const PART = /^[a-zA-Z0-9._-]{1,253}$/;

/** Parses a manager name or a prefix of one: up to four parts, separated by slashes. */
export function parseManager(option: string, text: string): string {
  const parts = text.split("/");
  if (parts.length <= 4 && parts.every((part) => PART.test(part))) return text;
  throw new UsageError(
    `invalid value for --${option}: must be CLUSTER, CLUSTER/KIND, CLUSTER/KIND/NAMESPACE or CLUSTER/KIND/NAMESPACE/NAME`,
  );
}

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
