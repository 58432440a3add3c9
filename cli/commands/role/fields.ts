import type { Schema } from "../../../core/api/procedures.ts";
import type { Fields } from "../../fields.ts";

export const role = {
  type: "string",
  placeholder: "ROLE",
  help: "role id, role_…, or name",
  required: true,
} as const;

type Role = Schema<"Role">;

export const roleFields: Fields<Role> = [
  { name: "roleId", title: "id", value: (row) => row.id },
  { name: "name", title: "name", value: (row) => row.name, shrinks: true },
  {
    name: "permissions",
    title: "permissions",
    value: slugsOf,
    text: (row) => slugsOf(row).join(", ") || "none",
    shrinks: true,
  },
  { name: "description", title: "description", value: (row) => row.description ?? null, shrinks: true, drops: true },
];

/** Fields of a created role. */
export const madeRoleFields: Fields<{ readonly roleId: string; readonly name: string }> = [
  { name: "roleId", value: (row) => row.roleId },
  { name: "name", value: (row) => row.name },
];
/** Field of a deleted role; the API returns no others. */
export const namedRoleFields: Fields<{ readonly role: string }> = [{ name: "role", value: (row) => row.role }];

function slugsOf({ permissions = [] }: Role): string[] {
  return permissions.map(({ slug }) => slug);
}
