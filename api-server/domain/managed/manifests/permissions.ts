import { onApi, onApis, onNamespace, onNamespaces, onRbac } from "../../permissions/required-permissions.ts";

/* Permissions for applying and deleting manifests. They are the permissions of the procedures that change the same objects individually. */

const toWrite = (kind: string, when: string) => `for kind \`${kind}\`, unless \`dryRun\`, ${when}`;

/** Permissions that both procedures require: the permissions to read, and `update_api`, which also covers the policy of an API. */
const SHARED = {
  readRole: onRbac("read_role", "for kind `Role`"),
  readNamespace: onNamespace("read_namespace", "for kind `RatelimitNamespace`"),
  readOverride: onNamespace("read_override", "for kind `RatelimitOverride`"),
  readApi: onApi("read_api", "for kind `ApiKeyPolicy`"),
  readKey: onApi("read_key", "for kind `ApiKey`"),
  updateApi: onApi("update_api", toWrite("ApiKeyPolicy", "to change or delete it")),
};

export const TO_APPLY = {
  ...SHARED,
  createRole: onRbac("create_role", toWrite("Role", "to create it")),
  updateRole: onRbac("update_role", toWrite("Role", "to change it")),
  addPermissionToRole: onRbac("add_permission_to_role", toWrite("Role", "to change its permissions")),
  removePermissionFromRole: onRbac("remove_permission_from_role", toWrite("Role", "to change its permissions")),
  createPermission: onRbac("create_permission", toWrite("Role", "when a slug is new")),
  createNamespace: onNamespaces("create_namespace", toWrite("RatelimitNamespace", "to create or adopt it")),
  setOverride: onNamespace("set_override", toWrite("RatelimitOverride", "to set it")),
  deleteOverride: onNamespace("delete_override", toWrite("RatelimitOverride", "to move it")),
  createKey: onApi("create_key", toWrite("ApiKey", "to issue it")),
  updateKey: onApi("update_key", toWrite("ApiKey", "to change it")),
  deleteKey: onApi("delete_key", toWrite("ApiKey", "to revoke a replaced one")),
  createApi: onApis("create_api", toWrite("ApiKeyPolicy", "to create its API")),
};

export const TO_DELETE = {
  ...SHARED,
  deleteRole: onRbac("delete_role", toWrite("Role", "to delete it")),
  deleteNamespace: onNamespace("delete_namespace", toWrite("RatelimitNamespace", "to delete it")),
  deleteOverride: onNamespace("delete_override", toWrite("RatelimitOverride", "to delete it")),
  deleteKey: onApi("delete_key", toWrite("ApiKey", "to revoke it")),
  deleteApi: onApi("delete_api", toWrite("ApiKeyPolicy", "to delete its API")),
};

export type ToApply = (typeof TO_APPLY)[keyof typeof TO_APPLY];
export type ToDelete = (typeof TO_DELETE)[keyof typeof TO_DELETE];
