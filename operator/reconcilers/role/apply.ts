import type { ManifestObject } from "../../source/contract.ts";
import { type Context, managementOf } from "../context.ts";
import type { Applied } from "../reconcile-object.ts";
import type { RoleAction } from "./plan.ts";

export async function applyRole(action: RoleAction, object: ManifestObject, ctx: Context): Promise<Applied> {
  const { api } = ctx;
  switch (action.type) {
    case "create": {
      const { name, description, permissions } = action;
      const body = { name, permissions: [...permissions], ...(description === undefined ? {} : { description }) };
      return await api.call("permissions.createRole", body, managementOf(ctx, object));
    }
    case "update": {
      const { roleId, name, description, adopt } = action;
      const body = { role: roleId, name, description };
      return await api.call("permissions.updateRole", body, managementOf(ctx, object, { adopt }));
    }
    case "setPermissions": {
      const { roleId, permissions } = action;
      const body = { roleId, permissions: [...permissions] };
      return await api.call("permissions.setRolePermissions", body, managementOf(ctx, object));
    }
    case "delete": {
      const { roleId, onlyIfUnused } = action;
      // Omits the member unless it is set, because an older api-server does not support it.
      const body = { role: roleId, ...(onlyIfUnused ? { onlyIfUnused } : {}) };
      return await api.call("permissions.deleteRole", body, managementOf(ctx, object));
    }
    case "release":
      return await api.call(
        "permissions.deleteRole",
        { role: action.roleId },
        managementOf(ctx, object, { release: true }),
      );
  }
}

export function describeRole(action: RoleAction): string {
  switch (action.type) {
    case "create":
      return `create the role ${action.name}`;
    case "update":
      return `set name and description of the role ${action.name}`;
    case "setPermissions":
      return `set the ${action.permissions.length} permissions of the role ${action.roleId}`;
    case "delete":
      return `delete the role ${action.roleId}`;
    case "release":
      return `release the role ${action.roleId}`;
  }
}
