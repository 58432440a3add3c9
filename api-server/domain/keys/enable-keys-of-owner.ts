import { insertAudit } from "../../db/audit.ts";
import { changeOf } from "../../db/audit-change.ts";
import {
  countKeysOfOwner,
  enableSomeKeysOfOwner,
  listManagedKeysOfOwner,
  type OwnerRef,
} from "../../db/keys-of-owner.ts";
import { inTransaction } from "../../db/transaction.ts";
import type { Actor } from "../actor.ts";
import { auditEvent } from "../managed/changes.ts";
import { MANAGED } from "../managed/resources.ts";
import type { RequiredPermission } from "../permissions/required-permissions.ts";

/*
 * Disables or enables all keys of an owner. An owner can have very many keys, so a call uses several transactions. The number of keys per
 * call is limited, so that the call ends in time and the relay does not lag for long. The caller repeats the call until no keys remain. If
 * a call is interrupted, the next one continues with the remaining keys. Managed keys are skipped, because their manifests would revert the
 * change.
 */

const KEYS_PER_TRANSACTION = 500;
/** Maximum number of keys that one call changes. */
export const KEYS_PER_CALL_MAX = 5_000;
/** Maximum number of managed keys that a response lists. */
const MANAGED_KEYS_NAMED = 20;

export interface EnabledKeys {
  /** Number of changed keys; in a dry run, the number of keys that would change. */
  readonly changed: number;
  /** Number of keys that remain to be changed. */
  readonly left: number;
  /** Number of keys that already had the requested state before this call. */
  readonly unchanged: number;
  readonly managed: number;
  /** Some of the managed keys that were skipped. The message lists them. */
  readonly managedKeys: readonly { readonly id: string; readonly manager: string }[];
}

/** @throws PublicError 403, before any change, for the first API in which the owner has keys that the caller is not allowed to change. */
export async function enableKeysOfOwner<Required extends RequiredPermission>(
  actor: Actor<Required>,
  {
    apiId,
    externalId,
    enabled,
    dryRun,
    needed: required,
  }: Omit<OwnerRef, "workspaceId"> & { readonly enabled: boolean; readonly dryRun: boolean; readonly needed: Required },
): Promise<EnabledKeys> {
  const { deps, caller } = actor;
  const owner = { workspaceId: caller.workspaceId, apiId, externalId };
  const counts = await countKeysOfOwner(deps.db, { ...owner, enabled });
  for (const { api_id } of counts) actor.require(required, api_id);
  const sum = (of: "to_change" | "unchanged" | "managed"): number => counts.reduce((n, row) => n + row[of], 0);
  const managed = sum("managed");
  const rest = {
    unchanged: sum("unchanged"),
    managed,
    managedKeys: managed === 0 ? [] : await listManagedKeysOfOwner(deps.db, { ...owner, rowsMax: MANAGED_KEYS_NAMED }),
  };
  if (dryRun) return { changed: sum("to_change"), left: 0, ...rest };

  // Restricts the change to the APIs that were checked, because a key in another API may have been given this owner in the meantime.
  const apiIds = counts.map(({ api_id }) => api_id);
  let changed = 0;
  for (let some = KEYS_PER_TRANSACTION; some === KEYS_PER_TRANSACTION && changed < KEYS_PER_CALL_MAX; changed += some) {
    some = await enableSome(actor, { externalId, apiIds, enabled });
  }
  return { changed, left: Math.max(0, sum("to_change") - changed), ...rest };
}

function enableSome(
  actor: Actor,
  change: { readonly externalId: string; readonly apiIds: readonly string[]; readonly enabled: boolean },
): Promise<number> {
  const { deps, caller } = actor;
  return inTransaction(deps, async (tx) => {
    const rows = await enableSomeKeysOfOwner(tx, {
      ...change,
      workspaceId: caller.workspaceId,
      updatedAt: deps.nowMs(),
      max: KEYS_PER_TRANSACTION,
    });
    const { enabled } = change;
    const done = enabled ? "Enabled" : "Disabled";
    const events = rows.map((row) => ({
      ...auditEvent(MANAGED.key, row, "Updated", `${done} key ${row.id} with all of its owner`),
      ...changeOf({ enabled: !enabled }, { enabled }),
    }));
    await insertAudit(tx, actor, events);
    return rows.length;
  });
}
