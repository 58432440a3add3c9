import type { Pool, PoolClient } from "pg";
import { withoutOutbox } from "../../../postgres/unmarked-transaction.ts";
import { findApi } from "../../db/apis.ts";
import { type AuditedCall, insertAuditEvents, SYSTEM_ACTOR } from "../../db/audit.ts";
import { deleteLockedKeys, deleteQueuedKey, type QueuedKeyRow } from "../../db/queued-keys.ts";
import type { SealedString } from "../../keys/key-vault.ts";
import { apiNotFound } from "../refusals/refusals.ts";
import { importFullKeys } from "./import-full-keys.ts";
import { queuedKeyGivenUp } from "./key-events.ts";
import { readAsked, readDefinition } from "./queued-key-record.ts";

/**
 * Atomically creates accepted keys (queue-keys.ts), each on behalf of the root key that requested it, and removes their queue rows. The
 * transaction must have locked these rows.
 * @throws PublicError 404 if an API or the workspace was deleted in the meantime, otherwise like `importFullKeys`.
 */
export async function createQueuedKeys(
  tx: PoolClient,
  deps: AuditedCall["deps"],
  rows: readonly QueuedKeyRow[],
): Promise<void> {
  for (const [first, ...others] of byCall(rows)) {
    const { workspace_id: workspaceId, api_id: apiId } = first;
    const api = first.is_workspace_live ? await findApi(tx, { workspaceId, apiId }) : undefined;
    if (api === undefined) throw apiNotFound(apiId);
    const keys = [first, ...others].map((row) => ({
      ...readDefinition(row.definition),
      id: row.key_id,
      api,
      hash: row.hash,
      sealed: sealedOf(row),
    }));
    await importFullKeys(tx, { ...readAsked(workspaceId, first.requested_by), deps }, keys);
    await deleteLockedKeys(tx, { workspaceId, keyIds: keys.map(({ id }) => id) });
  }
}

type OfOneCall = [QueuedKeyRow, ...QueuedKeyRow[]];

/** Groups rows by the call that requested the keys, in the order of the rows. */
function byCall(rows: readonly QueuedKeyRow[]): OfOneCall[] {
  const calls = new Map<string, OfOneCall>();
  for (const row of rows) {
    const call = JSON.stringify([row.workspace_id, row.api_id, row.requested_by]);
    const others = calls.get(call);
    if (others === undefined) calls.set(call, [row]);
    else others.push(row);
  }
  return [...calls.values()];
}

/** Removes a queued key without creating it. Returns false if another process has tried to create the key since its row was read. */
export function giveUpQueuedKey(
  db: Pool,
  { nowMs, randomBytes }: AuditedCall["deps"],
  { row, reason }: { readonly row: QueuedKeyRow; readonly reason: string },
): Promise<boolean> {
  const { workspace_id: workspaceId, api_id: apiId, migration_id: migrationId } = row;
  return withoutOutbox(db, async (tx) => {
    if (!(await deleteQueuedKey(tx, refOf(row)))) return false;
    const context = { workspaceId, actor: SYSTEM_ACTOR, timeMs: nowMs(), randomBytes };
    await insertAuditEvents(tx, context, [queuedKeyGivenUp(row.key_id, reason, { apiId, migrationId })]);
    return true;
  });
}

/** Identifies the row of a queued key by its key, and by its number of failures when it was read. */
export const refOf = ({ workspace_id: workspaceId, key_id: keyId, failures }: QueuedKeyRow) => ({
  workspaceId,
  keyId,
  failures,
});

function sealedOf({ encryption_key_id, nonce, ciphertext }: QueuedKeyRow): SealedString | undefined {
  if (encryption_key_id === null || nonce === null || ciphertext === null) return undefined;
  return { encryptionKeyId: encryption_key_id, nonce, ciphertext };
}
