import { compileGrants, type Grants } from "../permissions/grants.ts";
import type { ApiRecord, IdentityRecord, KeyRecord, RoleRecord, WorkspaceRecord } from "./records.ts";

/** A key with everything that its record refers to: all that a verification decides on. Built once, then cached. */
export interface KeyView {
  readonly key: KeyRecord;
  readonly workspace: WorkspaceRecord;
  /** undefined when the API was deleted: the key is then not found. */
  readonly api: ApiRecord | undefined;
  /** undefined when there is none, or it was deleted. */
  readonly identity: IdentityRecord | undefined;
  /** Slugs held directly and by role, distinct and sorted. */
  readonly permissions: readonly string[];
  /** Names of the roles, sorted. */
  readonly roles: readonly string[];
  readonly grants: Grants;
}

/** Puts a key together with the records that it refers to; roles that were deleted are simply not in `roles`. */
export function buildKeyView(parts: {
  key: KeyRecord;
  workspace: WorkspaceRecord;
  api: ApiRecord | undefined;
  identity: IdentityRecord | undefined;
  roles: readonly RoleRecord[];
}): KeyView {
  const { key, workspace, api, identity, roles } = parts;
  const permissions = [...new Set([...key.permissions, ...roles.flatMap((role) => role.permissions)])].sort();
  return {
    key,
    workspace,
    api,
    identity,
    permissions,
    roles: roles.map((role) => role.name).sort(),
    grants: compileGrants(permissions),
  };
}
