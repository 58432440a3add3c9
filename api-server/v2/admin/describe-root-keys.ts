import {
  findingsOf,
  lastUseOf,
  type NoticedRootKey,
  narrowedPermissions,
} from "../../../core/permissions/root-key-findings.ts";
import type { Queryable } from "../../../postgres/queryable.ts";
import { findUsageSince, listRootKeyUsage } from "../../db/root-key-usage.ts";
import { type RootKeySummary, rootKeyState } from "../../db/root-keys.ts";
import type { RootKeyDetails, RootKeyOut } from "./root-key-schemas.ts";

/** Returns root keys of a workspace in the form of the API, in the order of the rows. */
export async function describeRootKeys(
  db: Queryable,
  { workspaceId, rows, nowMs }: { workspaceId: string; rows: readonly RootKeySummary[]; nowMs: number },
): Promise<RootKeyOut[]> {
  const known = await readUsage(db, workspaceId, rows);
  return rows.map((row) => toRootKeyOut(row, known(row), nowMs));
}

/** Returns one root key, with its usage. */
export async function describeRootKey(
  db: Queryable,
  { workspaceId, row, nowMs }: { workspaceId: string; row: RootKeySummary; nowMs: number },
): Promise<RootKeyDetails> {
  const noticed = (await readUsage(db, workspaceId, [row]))(row);
  const narrowTo = narrowedPermissions(noticed, nowMs);
  return {
    ...toRootKeyOut(row, noticed, nowMs),
    uses: noticed.uses
      .filter(({ tuple }) => tuple !== "")
      .map(({ tuple, lastUsedOn, onlyId }) => ({
        permission: tuple,
        lastUsedOn,
        ...(onlyId === null ? {} : { onlyId }),
      })),
    ...(Number.isFinite(noticed.usesSince) ? { usesSince: noticed.usesSince } : {}),
    ...(narrowTo === undefined ? {} : { narrowTo: [...narrowTo] }),
  };
}

async function readUsage(
  db: Queryable,
  workspaceId: string,
  rows: readonly RootKeySummary[],
): Promise<(row: RootKeySummary) => NoticedRootKey> {
  const usageSince = await findUsageSince(db);
  const uses = await listRootKeyUsage(db, { workspaceId, rootKeyIds: rows.map(({ id }) => id) });
  const byId = Map.groupBy(uses, (use) => use.root_key_id);
  return (row) => ({
    createdAt: row.created_at,
    enabled: row.enabled,
    expiresAt: row.expires_at,
    permissions: row.permissions,
    permissionsSince: row.permissions_changed_at ?? row.created_at,
    hasSuccessor: row.successor_id !== null,
    uses: (byId.get(row.id) ?? []).map((use) => ({
      tuple: use.tuple,
      lastUsedOn: use.last_used_on,
      onlyId: use.only_id,
    })),
    usesSince: usageSince,
  });
}

function toRootKeyOut(row: RootKeySummary, noticed: NoticedRootKey, nowMs: number): RootKeyOut {
  const lastUsedOn = lastUseOf(noticed.uses);
  return {
    rootKeyId: row.id,
    ...(row.name === null ? {} : { name: row.name }),
    start: row.start,
    ...(row.environment === null ? {} : { environment: row.environment }),
    permissions: row.permissions.toSorted(),
    state: rootKeyState(row, nowMs),
    enabled: row.enabled,
    ...(row.expires_at === null ? {} : { expires: row.expires_at }),
    createdAt: row.created_at,
    ...(lastUsedOn === undefined ? {} : { lastUsedOn }),
    ...(row.v1_used_on === null ? {} : { v1UsedOn: row.v1_used_on }),
    ...(row.predecessor_id === null ? {} : { predecessorId: row.predecessor_id }),
    ...(row.successor_id === null ? {} : { successorId: row.successor_id }),
    revision: row.revision,
    findings: findingsOf(noticed, nowMs).map(({ kind, permissions }) =>
      permissions === undefined ? { kind } : { kind, permissions: [...permissions] },
    ),
  };
}
