import type { PoolClient } from "pg";
import { type AuditEvent, insertAudit } from "../../db/audit.ts";
import { replaceKeyPermissions, replaceKeyRoles, touchKey } from "../../db/key-changes.ts";
import type { KeyRef, KeyRow } from "../../db/keys.ts";
import { listPermissionsOfKey, type PermissionRow } from "../../db/permissions.ts";
import { listRolesOfKey, type RoleRow } from "../../db/roles.ts";
import type { Actor } from "../actor.ts";
import { auditEvent, lockManaged } from "../managed/changes.ts";
import { MANAGED } from "../managed/resources.ts";
import { adopting, guardManaged } from "../managed/rules.ts";
import type { RequiredPermission } from "../permissions/required-permissions.ts";
import { connectedToKey, disconnectedFromKey } from "./key-events.ts";

/*
 * Links of a key to its direct permissions and to its roles. Six procedures change links. Each of them computes the desired links, and this
 * file writes only the differences, so a repeated call changes nothing.
 */

/** A kind of link: how links of this kind are read and written, and how the audit log names their targets. */
interface LinkSort<End extends { readonly id: string }> {
  readonly list: (tx: PoolClient, key: KeyRef) => Promise<End[]>;
  readonly replace: (tx: PoolClient, key: KeyRef, ids: readonly string[]) => Promise<void>;
  readonly toTarget: (end: End) => { readonly type: "permission" | "role"; readonly id: string; readonly name: string };
}

/** Links to permissions, sorted by slug. */
export const permissionLinks: LinkSort<PermissionRow> = {
  list: listPermissionsOfKey,
  replace: (tx, key, permissionIds) => replaceKeyPermissions(tx, { ...key, permissionIds }),
  toTarget: ({ id, slug }) => ({ type: "permission", id, name: slug }),
};

/** Links to roles, sorted by name. */
export const roleLinks: LinkSort<RoleRow> = {
  list: listRolesOfKey,
  replace: (tx, key, roleIds) => replaceKeyRoles(tx, { ...key, roleIds }),
  toTarget: ({ id, name }) => ({ type: "role", id, name }),
};

/**
 * Locks the key and returns it. Because of the lock, concurrent calls for a key run one at a time, and each sees the result of the previous
 * one.
 * @param ref.needed permissions that the root key must hold; those with an API as their scope are checked for the key's API.
 * @throws PublicError 404 `key_not_found`, or 403 if the key exists but the root key lacks a permission.
 */
export async function lockKeyToLink<Required extends RequiredPermission>(
  tx: PoolClient,
  actor: Actor<Required>,
  { keyId, needed }: { readonly keyId: string; readonly needed: readonly Required[] },
): Promise<KeyRow> {
  const key = await lockManaged(tx, MANAGED.key, { workspaceId: actor.caller.workspaceId, which: keyId });
  for (const required of needed) actor.require(required, key.api_id);
  return key;
}

export interface Relinking<End> {
  /** Returns the desired links, given the current ones. Duplicates are ignored. */
  readonly wanted: (held: readonly End[]) => readonly End[];
  /** Events of objects that were created for the change. The audit log lists them after the removed links and before the added ones. */
  readonly events?: readonly AuditEvent[];
}

/** Adds links and keeps the existing ones. */
export const adding = <End>(ends: readonly End[], events: readonly AuditEvent[] = []): Relinking<End> => ({
  wanted: (held) => [...held, ...ends],
  events,
});

/** Replaces all links of the key. */
export const replacing = <End>(ends: readonly End[], events: readonly AuditEvent[] = []): Relinking<End> => ({
  wanted: () => ends,
  events,
});

/** Removes the links to the given ids. */
export function removing<End extends { readonly id: string }>(ids: Iterable<string>): Relinking<End> {
  const removed = new Set(ids);
  return { wanted: (held) => held.filter(({ id }) => !removed.has(id)) };
}

interface Written<End> {
  readonly before: End[];
  readonly isRelinked: boolean;
  /** Events of the removed links, of created objects, and of the added links, in this order. */
  readonly events: readonly AuditEvent[];
}

/** Replaces the links of a locked key with the requested ones. The caller must update the key's own row and write the audit log. */
export async function writeLinks<End extends { readonly id: string }>(
  tx: PoolClient,
  key: KeyRef,
  links: LinkSort<End>,
  { wanted: requested, events = [] }: Relinking<End>,
): Promise<Written<End>> {
  const before = await links.list(tx, key);
  const idsBefore = new Set(before.map(({ id }) => id));
  const after = new Map(requested(before).map((end) => [end.id, end]));
  const removed = before.filter(({ id }) => !after.has(id));
  const added = [...after.values()].filter(({ id }) => !idsBefore.has(id));
  const isRelinked = added.length > 0 || removed.length > 0;
  if (isRelinked) await links.replace(tx, key, [...after.keys()]);
  return {
    before,
    isRelinked,
    events: [
      ...removed.map((end) => disconnectedFromKey(key.keyId, links.toTarget(end))),
      ...events,
      ...added.map((end) => connectedToKey(key.keyId, links.toTarget(end))),
    ],
  };
}

/**
 * Replaces the links of a locked key, and writes one audit row for each that is added or removed.
 * @returns the links of the key afterwards.
 * @throws PublicError 409 `managed_by_manifest` or `managed_exists`.
 */
export async function relinkKey<End extends { readonly id: string }>(
  tx: PoolClient,
  actor: Actor,
  key: KeyRow,
  links: LinkSort<End>,
  relinking: Relinking<End>,
): Promise<End[]> {
  const ref = { workspaceId: actor.caller.workspaceId, keyId: key.id };
  const manager = guardManaged(actor, MANAGED.key, key);
  const isHandedOver = manager !== key.manager;
  const { before, isRelinked, events } = await writeLinks(tx, ref, links, relinking);
  if (isRelinked || isHandedOver) {
    const updatedAt = actor.deps.nowMs();
    await adopting(actor, MANAGED.key, () => touchKey(tx, { ...ref, manager, updatedAt }));
  }
  await insertAudit(tx, actor, [
    ...(isHandedOver ? [auditEvent(MANAGED.key, key, manager === null ? "Released" : "Adopted")] : []),
    ...events,
  ]);
  return isRelinked ? links.list(tx, ref) : before;
}
