import { randomBytes } from "node:crypto";
import { makeId } from "../../../core/ids.ts";
import { EXPIRES_MAX_MS } from "../../../core/keys/key-hash.ts";
import { hashKey, makeKeyString } from "../../../core/keys/key-string.ts";
import { rootKeyPermissionProblem, storedTuple } from "../../../core/permissions/root-key.ts";
import type { Queryable } from "../../../postgres/queryable.ts";
import type { AuditEvent } from "../../db/audit.ts";
import { changeOf } from "../../db/audit-change.ts";
import {
  deleteRootKey,
  findLastSuccessor,
  insertRootKey,
  lockRootKey,
  type NewRootKey,
  type RootKeyRef,
  type RootKeySettings,
  type RootKeySummary,
  updateRootKey,
} from "../../db/root-keys.ts";
import { inTransaction } from "../../db/transaction.ts";
import { type Administrator, insertAdministration } from "./administrator.ts";

const ROOT_KEY_PREFIX = "postern";
const ID_BYTES = 24;

export const ROOT_KEY_NAME_LENGTH_MAX = 255;

/** Label of the environment that uses a root key. */
export const ROOT_KEY_ENVIRONMENT = /^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$/;

/** Maximum number of permissions of a root key. It is limited because each request with the root key checks all of them. */
export const ROOT_KEY_PERMISSIONS_MAX = 1000;

export interface IssuedRootKey {
  readonly rootKeyId: string;
  /** The secret string, which is not stored. */
  readonly rootKey: string;
  readonly start: string;
  readonly createdAt: number;
}

/**
 * Returns the distinct tuples, in their stored form and in the given order. If a tuple is invalid, returns the first such tuple with its
 * problem instead.
 */
export function readTuples(
  given: readonly string[],
): { readonly tuples: readonly string[] } | { readonly at: number; readonly problem: string } {
  const tuples = given.map(storedTuple);
  for (const [at, tuple] of tuples.entries()) {
    const problem = rootKeyPermissionProblem(tuple);
    if (problem !== undefined) return { at, problem };
  }
  return { tuples: [...new Set(tuples)] };
}

/** Inserts a new root key without an audit row. The root key's string is in the result, and is not stored. */
export async function insertNewRootKey(
  db: Queryable,
  options: Pick<NewRootKey, "workspaceId" | "permissions" | "environment" | "predecessorId"> & {
    name?: string | null;
    expiresAtMs?: number | null;
    /** Creation time, Unix ms. Default: the machine's clock. */
    createdAt?: number;
  },
): Promise<IssuedRootKey> {
  const { key, start } = makeKeyString({ prefix: ROOT_KEY_PREFIX, randomBytes: randomBytes(24) });
  const rootKeyId = makeId("rootKey", randomBytes(ID_BYTES));
  const { name = null, expiresAtMs = null, createdAt = Date.now(), ...rest } = options;
  await insertRootKey(db, {
    ...rest,
    id: rootKeyId,
    hash: hashKey(key),
    start,
    name,
    expiresAt: expiresAtMs,
    createdAt,
  });
  return { rootKeyId, rootKey: key, start, createdAt };
}

/** Creates a root key. The root key's string is in the result, and is not stored. */
export async function issueRootKey(
  administrator: Administrator,
  options: {
    workspaceId: string;
    permissions: readonly string[];
    name?: string;
    environment?: string;
    expiresAtMs?: number;
  },
): Promise<IssuedRootKey> {
  return inTransaction(administrator, async (tx) => {
    const made = await insertNewRootKey(tx, { ...options, createdAt: administrator.nowMs() });
    await insertAdministration(tx, administrator, options.workspaceId, [
      event("create", `Created root key ${made.rootKeyId}`, { id: made.rootKeyId, name: options.name ?? null }),
    ]);
    return made;
  });
}

/** Returns the fields of a root key for the audit log. */
const fieldsOf = ({ name, environment, enabled, expires_at: expiresAt, permissions }: RootKeySettings) => ({
  ...{ name, environment, enabled, expiresAt },
  permissions: [...permissions].sort(),
});

export interface RootKeyChange {
  readonly name?: string;
  readonly environment?: string | null;
  readonly enabled?: boolean;
  /** Expiry, Unix ms; `null` if the root key never expires. */
  readonly expiresAt?: number | null;
  readonly permissions?: readonly string[];
}

/**
 * Changes the given settings; writes nothing if nothing changes. `mayChange` is called with the locked root key, and throws to reject the
 * change. Returns `undefined` if the workspace has no such root key.
 */
export async function changeRootKey(
  administrator: Administrator,
  { workspaceId, rootKeyId, ...change }: RootKeyRef & RootKeyChange,
  mayChange: (before: RootKeySummary, after: RootKeySettings) => void = () => undefined,
): Promise<RootKeySummary | undefined> {
  return inTransaction(administrator, async (tx) => {
    const before = await lockRootKey(tx, { workspaceId, rootKeyId });
    if (before === undefined) return undefined;
    const { name = before.name, environment = before.environment, enabled = before.enabled } = change;
    const { expiresAt = before.expires_at, permissions = before.permissions } = change;
    const isAllowedTheSame = sameTexts(permissions, before.permissions);
    const settings: RootKeySettings = {
      name,
      environment,
      enabled,
      expires_at: expiresAt,
      permissions: [...permissions],
      permissions_changed_at: isAllowedTheSame ? before.permissions_changed_at : administrator.nowMs(),
      successor_id: before.successor_id,
    };
    mayChange(before, settings);
    const what = [
      ...(name === before.name ? [] : [`name ${JSON.stringify(name)}`]),
      ...(environment === before.environment ? [] : [`environment ${environment ?? "none"}`]),
      ...(enabled === before.enabled ? [] : [enabled ? "enabled" : "disabled"]),
      ...(expiresAt === before.expires_at ? [] : [`expires ${expiresAt ?? "never"}`]),
      ...(isAllowedTheSame ? [] : [`permissions ${someOf(permissions)}`]),
    ];
    if (what.length === 0) return before;
    await updateRootKey(tx, { workspaceId, rootKeyId, settings });
    const changed = changeOf(fieldsOf(before), fieldsOf(settings));
    await insertAdministration(tx, administrator, workspaceId, [
      { ...event("update", `Updated root key ${rootKeyId}: ${what.join(", ")}`, { id: rootKeyId, name }), ...changed },
    ]);
    return { ...before, ...settings, revision: before.revision + 1 };
  });
}

/** Maximum length of the overlap, in which a root key and its successor are both valid. */
export const ROTATION_OVERLAP_MAX_MS = 7_776_000_000;

export interface RotatedRootKey extends IssuedRootKey, Pick<RootKeySummary, "name" | "environment" | "permissions"> {
  /** Expiry of the successor, Unix ms; `null` for no expiry. */
  readonly expiresAt: number | null;
  /** Expiry of the old root key, Unix ms. */
  readonly endsAt: number;
}

/**
 * Creates a successor with the same name, environment and permissions. The old root key expires after `overlapMs`, or at its own expiry if
 * that is earlier. The successor gets the original lifetime of the old root key, unless `expiresAt` is given. `mayRotate` is called with
 * the locked root key, and throws to reject the rotation. Returns "ROTATED", and rotates nothing, if the old root key already has a
 * successor that is not revoked.
 */
export async function rotateRootKey(
  administrator: Administrator,
  { workspaceId, rootKeyId, overlapMs, ...options }: RootKeyRef & { overlapMs: number; expiresAt?: number | null },
  mayRotate: (before: RootKeySummary) => void = () => undefined,
): Promise<RotatedRootKey | "NOT_FOUND" | "ROTATED"> {
  return inTransaction(administrator, async (tx) => {
    const before = await lockRootKey(tx, { workspaceId, rootKeyId });
    if (before === undefined) return "NOT_FOUND";
    mayRotate(before);
    const { name, environment, permissions, successor_id: successorId } = before;
    const last = successorId === null ? undefined : await findLastSuccessor(tx, { workspaceId, successorId });
    if (last?.is_succeeded === true) return "ROTATED";
    const nowMs = administrator.nowMs();
    // Uses the root key's original lifetime for the successor, because after an earlier rotation its current expiry may be just the end of
    // the overlap.
    const expiresAt =
      options.expiresAt === undefined ? endOfSameLife(before, last ?? before, nowMs) : options.expiresAt;
    const made = await insertNewRootKey(tx, {
      ...{ workspaceId, permissions, name, environment, predecessorId: rootKeyId },
      ...{ expiresAtMs: expiresAt, createdAt: nowMs },
    });
    const endsAt = Math.min(nowMs + overlapMs, before.expires_at ?? Number.POSITIVE_INFINITY);
    const settings = { ...before, expires_at: endsAt, successor_id: made.rootKeyId };
    const ended = {
      ...event("update", `Updated root key ${rootKeyId}: successor ${made.rootKeyId}, expires ${endsAt}`, before),
      ...changeOf(fieldsOf(before), fieldsOf(settings)),
    };
    await updateRootKey(tx, { workspaceId, rootKeyId, settings });
    await insertAdministration(tx, administrator, workspaceId, [
      event("create", `Created root key ${made.rootKeyId}, the successor of ${rootKeyId}`, {
        id: made.rootKeyId,
        name,
      }),
      ended,
    ]);
    return { ...made, name, environment, permissions, expiresAt, endsAt };
  });
}

type Life = Pick<RootKeySummary, "created_at" | "expires_at">;

/** Returns the expiry of a root key that is created now with the original lifetime of the old root key. */
function endOfSameLife(old: Life, model: Life, nowMs: number): number | null {
  if (old.expires_at === null || model.expires_at === null) return null;
  return Math.min(nowMs + Math.max(model.expires_at - model.created_at, 0), EXPIRES_MAX_MS);
}

/** Revokes a root key permanently. Returns `undefined` if the workspace has no such root key. */
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

const PERMISSIONS_NAMED = 50;

/** Returns the permissions for a row of the audit log. Lists only so many that the row stays readable. */
function someOf(permissions: readonly string[]): string {
  const named = permissions.toSorted().slice(0, PERMISSIONS_NAMED).join(", ");
  return permissions.length > PERMISSIONS_NAMED ? `${named} and ${permissions.length - PERMISSIONS_NAMED} more` : named;
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
