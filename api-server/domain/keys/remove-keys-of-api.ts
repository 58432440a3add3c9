import { PublicError } from "../../../core/errors.ts";
import { insertAudit } from "../../db/audit.ts";
import {
  deleteSomeKeys,
  findManagedKeyOfApi,
  listLimitedKeyIds,
  purgeSomeDeletedKeys,
  purgeSomeKeys,
} from "../../db/keys-of-api.ts";
import { inTransaction } from "../../db/transaction.ts";
import type { Actor } from "../actor.ts";
import type { CreditsDeps } from "../deps.ts";
import { auditEvent } from "../managed/changes.ts";
import { MANAGED } from "../managed/resources.ts";
import { guardManaged } from "../managed/rules.ts";
import type { RequiredPermission } from "../permissions/required-permissions.ts";
import { removeKey } from "./remove-key.ts";

/*
 * Deletes all keys of an API. An API can have a million keys, so the call uses several transactions. After an interruption, the next call
 * continues with the remaining keys. The audit log gets a row for each key.
 */

/** Number of keys that are deleted in one transaction. */
const KEYS_PER_TRANSACTION = 500;

/**
 * Returns the number of deleted keys. With `permanent`, also removes, and counts, keys that were already marked as deleted.
 * @param needed permission that the root key needs on the API; the caller has already checked it.
 * @throws PublicError 409 `managed_by_manifest`, before any deletion, if a manifest manages one of the keys.
 */
export async function removeKeysOfApi<Required extends RequiredPermission>(
  actor: Actor<Required, CreditsDeps>,
  {
    apiId,
    permanent,
    needed: required,
  }: { readonly apiId: string; readonly permanent: boolean; readonly needed: Required },
): Promise<number> {
  const { deps, caller } = actor;
  const api = { workspaceId: caller.workspaceId, apiId };
  const managed = await findManagedKeyOfApi(deps.db, api);
  if (managed !== undefined) guardManaged(actor, MANAGED.key, managed);

  const some = { ...api, max: KEYS_PER_TRANSACTION };
  const unlimited = await inParts(() =>
    inTransaction(deps, async (tx) => {
      const deletedAt = deps.nowMs();
      const rows = permanent ? await purgeSomeKeys(tx, some) : await deleteSomeKeys(tx, { ...some, deletedAt });
      const events = rows.map((row) => auditEvent(MANAGED.key, { ...row, api_id: apiId }, "Deleted"));
      await insertAudit(tx, actor, events);
      return rows.length;
    }),
  );
  const limited = await removeLimitedKeys(actor, { apiId, permanent, needed: required });
  if (!permanent) return unlimited + limited;
  return unlimited + limited + (await inParts(() => inTransaction(deps, (tx) => purgeSomeDeletedKeys(tx, some))));
}

/** Repeats `work` until it returns less than a full batch. Returns the sum of the batch sizes. */
async function inParts(work: () => Promise<number>): Promise<number> {
  let sum = 0;
  for (let part = KEYS_PER_TRANSACTION; part === KEYS_PER_TRANSACTION; sum += part) part = await work();
  return sum;
}

/** Removes keys with credits one at a time, because each key's Redis counter must be suspended during its removal. */
async function removeLimitedKeys<Required extends RequiredPermission>(
  actor: Actor<Required, CreditsDeps>,
  {
    apiId,
    permanent,
    needed: required,
  }: { readonly apiId: string; readonly permanent: boolean; readonly needed: Required },
): Promise<number> {
  const { deps, caller } = actor;
  let sum = 0;
  let cursor = "";
  for (;;) {
    const page = { workspaceId: caller.workspaceId, apiId, cursor, max: KEYS_PER_TRANSACTION };
    const keyIds = await listLimitedKeyIds(deps.db, page);
    for (const keyId of keyIds) sum += (await removeIfThere(actor, { keyId, permanent, needed: required })) ? 1 : 0;
    const last = keyIds.at(-1);
    if (last === undefined) return sum;
    cursor = last;
  }
}

/** Removes a key. Returns false if a concurrent call has removed it. */
async function removeIfThere<Required extends RequiredPermission>(
  actor: Actor<Required, CreditsDeps>,
  options: { readonly keyId: string; readonly permanent: boolean; readonly needed: Required },
): Promise<boolean> {
  try {
    await removeKey(actor, options);
    return true;
  } catch (error) {
    if (error instanceof PublicError && error.kind === "key_not_found") return false;
    throw error;
  }
}
