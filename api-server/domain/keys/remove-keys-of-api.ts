import { PublicError } from "../../../core/errors.ts";
import type { NeededPermission } from "../../needed-permissions.ts";
import type { CallNeeding } from "../../procedure.ts";
import { insertAudit } from "../../store/audit.ts";
import {
  deleteSomeKeys,
  findManagedKeyOfApi,
  listLimitedKeyIds,
  purgeSomeDeletedKeys,
  purgeSomeKeys,
} from "../../store/keys-of-api.ts";
import { inTransaction } from "../../store/transaction.ts";
import { auditEvent } from "../managed/changes.ts";
import { guardManaged } from "../managed/rules.ts";
import { MANAGED } from "../managed/things.ts";
import { removeKey } from "./remove-key.ts";

/*
 * Deletes all keys of an API. There can be a million, so it takes several transactions; if the call is interrupted, some keys are
 * left, and the next call goes on. Each key has its row in the audit log.
 */

/** Keys that are deleted in one transaction. */
const KEYS_PER_TRANSACTION = 500;

/**
 * Returns how many keys were deleted; with `permanent` those that were only marked before count too, and are removed.
 * @param needed what the root key needs on the API; it was required already.
 * @throws PublicError 409 `managed_elsewhere`, before anything is deleted, when a manifest manages one of them.
 */
export async function removeKeysOfApi<Needed extends NeededPermission>(
  call: CallNeeding<unknown, Needed>,
  { apiId, permanent, needed }: { readonly apiId: string; readonly permanent: boolean; readonly needed: Needed },
): Promise<number> {
  const { deps, caller } = call;
  const api = { workspaceId: caller.workspaceId, apiId };
  const managed = await findManagedKeyOfApi(deps.db, api);
  if (managed !== undefined) guardManaged(call, MANAGED.key, managed);

  const some = { ...api, max: KEYS_PER_TRANSACTION };
  const unlimited = await inParts(() =>
    inTransaction(deps, async (tx) => {
      const deletedAt = deps.nowMs();
      const rows = permanent ? await purgeSomeKeys(tx, some) : await deleteSomeKeys(tx, { ...some, deletedAt });
      const events = rows.map((row) => auditEvent(MANAGED.key, { ...row, api_id: apiId }, "Deleted"));
      await insertAudit(tx, call, events);
      return rows.length;
    }),
  );
  const limited = await removeLimitedKeys(call, { apiId, permanent, needed });
  if (!permanent) return unlimited + limited;
  return unlimited + limited + (await inParts(() => inTransaction(deps, (tx) => purgeSomeDeletedKeys(tx, some))));
}

/** Repeats the work until it takes less than a whole part; returns the sum. */
async function inParts(work: () => Promise<number>): Promise<number> {
  let sum = 0;
  for (let part = KEYS_PER_TRANSACTION; part === KEYS_PER_TRANSACTION; sum += part) part = await work();
  return sum;
}

/** Keys with credits one by one, because the shared counter of each is suspended meanwhile. */
async function removeLimitedKeys<Needed extends NeededPermission>(
  call: CallNeeding<unknown, Needed>,
  { apiId, permanent, needed }: { readonly apiId: string; readonly permanent: boolean; readonly needed: Needed },
): Promise<number> {
  const { deps, caller } = call;
  let sum = 0;
  let cursor = "";
  for (;;) {
    const page = { workspaceId: caller.workspaceId, apiId, cursor, max: KEYS_PER_TRANSACTION };
    const keyIds = await listLimitedKeyIds(deps.db, page);
    for (const keyId of keyIds) sum += (await removeIfThere(call, { keyId, permanent, needed })) ? 1 : 0;
    const last = keyIds.at(-1);
    if (last === undefined) return sum;
    cursor = last;
  }
}

/** Returns false when another call was quicker. */
async function removeIfThere<Needed extends NeededPermission>(
  call: CallNeeding<unknown, Needed>,
  options: { readonly keyId: string; readonly permanent: boolean; readonly needed: Needed },
): Promise<boolean> {
  try {
    await removeKey(call, options);
    return true;
  } catch (error) {
    if (error instanceof PublicError && error.kind === "key_not_found") return false;
    throw error;
  }
}
