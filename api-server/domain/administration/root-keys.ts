import type { AuditEvent } from "../../store/audit.ts";
import {
  deleteRootKey,
  lockRootKey,
  type RootKeyRef,
  type RootKeySummary,
  updateRootKey,
} from "../../store/root-keys.ts";
import { inTransaction } from "../../store/transaction.ts";
import { type Administrator, insertAdministration } from "./administrator.ts";
import { createRootKey } from "./bootstrap.ts";

export const ROOT_KEY_NAME_LENGTH_MAX = 255;

/** Creates a root key. Its string is only in the result. */
export async function issueRootKey(
  administrator: Administrator,
  options: { workspaceId: string; permissions: readonly string[]; name?: string; expiresAtMs?: number },
): Promise<{ rootKeyId: string; rootKey: string; start: string; createdAt: number }> {
  return inTransaction(administrator, async (tx) => {
    const made = await createRootKey(tx, options);
    await insertAdministration(tx, administrator, options.workspaceId, [
      event("create", `Created root key ${made.rootKeyId}`, { id: made.rootKeyId, name: options.name ?? null }),
    ]);
    return made;
  });
}

/** Changes the given settings; writes nothing when nothing changes. Returns undefined when the workspace has no such root key. */
export async function changeRootKey(
  administrator: Administrator,
  {
    workspaceId,
    rootKeyId,
    ...change
  }: RootKeyRef & { enabled?: boolean; expiresAt?: number | null; permissions?: readonly string[] },
): Promise<RootKeySummary | undefined> {
  return inTransaction(administrator, async (tx) => {
    const before = await lockRootKey(tx, { workspaceId, rootKeyId });
    if (before === undefined) return undefined;
    const { enabled = before.enabled, expiresAt = before.expires_at, permissions = before.permissions } = change;
    const isAllowedTheSame = sameTexts(permissions, before.permissions);
    if (enabled === before.enabled && expiresAt === before.expires_at && isAllowedTheSame) return before;
    await updateRootKey(tx, { workspaceId, rootKeyId, enabled, expiresAt, permissions });
    const what = [
      ...(enabled === before.enabled ? [] : [enabled ? "enabled" : "disabled"]),
      ...(expiresAt === before.expires_at ? [] : [`expires ${expiresAt ?? "never"}`]),
      ...(isAllowedTheSame ? [] : [`permissions ${[...permissions].sort().join(", ")}`]),
    ];
    await insertAdministration(tx, administrator, workspaceId, [
      event("update", `Updated root key ${rootKeyId}: ${what.join(", ")}`, before),
    ]);
    return { ...before, enabled, expires_at: expiresAt, permissions: [...permissions] };
  });
}

/** Revokes a root key permanently. Returns undefined when the workspace has no such root key. */
export async function revokeRootKey(
  administrator: Administrator,
  ref: RootKeyRef,
): Promise<RootKeySummary | undefined> {
  return inTransaction(administrator, async (tx) => {
    const before = await lockRootKey(tx, ref);
    if (before === undefined) return undefined;
    await deleteRootKey(tx, { ...ref, deletedAt: administrator.nowMs() });
    await insertAdministration(tx, administrator, ref.workspaceId, [
      event("delete", `Revoked root key ${ref.rootKeyId}`, before),
    ]);
    return before;
  });
}

const sameTexts = (a: readonly string[], b: readonly string[]): boolean =>
  new Set(a).symmetricDifference(new Set(b)).size === 0;

const event = (
  verb: string,
  description: string,
  { id, name }: { readonly id: string; readonly name: string | null },
): AuditEvent => ({
  event: `rootKey.${verb}`,
  description,
  targets: [{ type: "rootKey", id, ...(name === null ? {} : { name }) }],
});
