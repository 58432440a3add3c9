import type { Schema } from "../../core/api/procedures.ts";
import { withApi } from "../api/connection.ts";
import { pagesOf, readPaging } from "../api/pages.ts";
import { defineCommand, UsageError } from "../command.ts";
import { type Fields, objectShape, pagedShape } from "../fields.ts";
import { connection, json, paging, permissions } from "../options.ts";
import { printOne, printPages } from "../output.ts";

export const role = {
  type: "string",
  placeholder: "ROLE",
  help: "role id (role_…) or name",
  required: true,
} as const;

type Role = Schema<"Role">;

const roleFields: Fields<Role> = [
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
const madeRoleFields: Fields<{ readonly roleId: string; readonly name: string }> = [
  { name: "roleId", value: (row) => row.roleId },
  { name: "name", value: (row) => row.name },
];
/** The only field that the API returns for a deleted role. */
const namedRoleFields: Fields<{ readonly role: string }> = [{ name: "role", value: (row) => row.role }];

function slugsOf({ permissions = [] }: Role): string[] {
  return permissions.map(({ slug }) => slug);
}

export const roleCreate = defineCommand({
  name: "role create",
  description:
    "Creates missing permissions; this requires rbac.*.create_permission. Requires rbac.*.create_role, and with --permissions rbac.*.add_permission_to_role.",
  options: {
    name: { type: "string", placeholder: "NAME", help: "name, referenced by keys", required: true },
    description: { type: "string", placeholder: "TEXT", help: "description" },
    permissions: { ...permissions, help: "permissions to grant" },
    ...connection,
    json,
  },
  response: objectShape(madeRoleFields),
  run: async (options, io) => {
    const { name, description } = options;
    const body = {
      name,
      ...(description === undefined ? {} : { description }),
      ...(options.permissions.length === 0 ? {} : { permissions: [...options.permissions] }),
    };
    const { data } = await withApi(options, io, (api) => api.call("permissions.createRole", body));
    const row = { roleId: data.roleId, name };
    printOne(io, options, { fields: madeRoleFields, row, sentence: `role ${row.roleId} is created` });
    return 0;
  },
});

export const roleList = defineCommand({
  name: "role list",
  description: "Requires rbac.*.read_role.",
  options: {
    search: { type: "string", placeholder: "TEXT", help: "filter by a part of the id, name or description" },
    ...paging,
    ...connection,
    json,
  },
  response: pagedShape("roles", roleFields),
  run: async (options, io) => {
    const { search } = options;
    const body = search === undefined ? {} : { search };
    const paged = readPaging(options, "role");
    await withApi(options, io, (api) => {
      const pages = pagesOf(api, "permissions.listRoles", body, paged);
      return printPages(io, options, { resources: "roles", fields: roleFields, pages });
    });
    return 0;
  },
});

export const roleGet = defineCommand({
  name: "role get",
  description: "Requires rbac.*.read_role.",
  options: { role, ...connection, json },
  response: objectShape(roleFields),
  run: async (options, io) => {
    const body = { role: options.role };
    const { data: row } = await withApi(options, io, (api) => api.call("permissions.getRole", body));
    printOne(io, options, { fields: roleFields, row });
    return 0;
  },
});

export const roleUpdate = defineCommand({
  name: "role update",
  description:
    "Fails without a change if the role changes concurrently. Requires rbac.*.read_role, rbac.*.add_permission_to_role and rbac.*.remove_permission_from_role, and for a missing permission rbac.*.create_permission.",
  options: {
    role,
    permissions: { ...permissions, help: "new list of permissions" },
    "no-permissions": { type: "boolean", help: "remove all permissions" },
    ...connection,
    json,
  },
  response: objectShape(roleFields),
  run: async (options, io) => {
    const { role: named, permissions: wanted, "no-permissions": none } = options;
    if (none === wanted.length > 0) throw new UsageError("set --permissions or --no-permissions");
    const row = await withApi(options, io, async (api) => {
      const { data: before } = await api.call("permissions.getRole", { role: named });
      const expected = (before.permissions ?? []).map(({ slug }) => slug);
      const body = { roleId: before.id, permissions: [...wanted], expected };
      return { ...before, permissions: (await api.call("permissions.setRolePermissions", body)).data };
    });
    printOne(io, options, { fields: roleFields, row });
    return 0;
  },
});

export const roleDelete = defineCommand({
  name: "role delete",
  description: "Requires rbac.*.delete_role.",
  options: {
    role,
    "only-if-unused": { type: "boolean", help: "delete the role only if no key has it" },
    ...connection,
    json,
  },
  response: objectShape(namedRoleFields),
  run: async (options, io) => {
    const row = { role: options.role };
    const body = { ...row, ...(options["only-if-unused"] ? { onlyIfUnused: true } : {}) };
    await withApi(options, io, (api) => api.call("permissions.deleteRole", body));
    printOne(io, options, { fields: namedRoleFields, row, sentence: `role ${row.role} is deleted` });
    return 0;
  },
});
