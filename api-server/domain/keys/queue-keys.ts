import { PublicError } from "../../../core/errors.ts";
import { withoutOutbox } from "../../../postgres/unmarked-transaction.ts";
import type { ApiRow } from "../../db/apis.ts";
import { insertAudit } from "../../db/audit.ts";
import { insertQueuedKeys } from "../../db/queued-keys.ts";
import type { Actor } from "../actor.ts";
import type { ChangeDeps, VaultDeps } from "../deps.ts";
import { type ForeignKey, prepareImport } from "./import-full-keys.ts";
import { keysEnqueued } from "./key-events.ts";
import { writeAsked, writeDefinition } from "./queued-key-record.ts";

/** Maximum number of queued keys in one workspace. With more, callers would wait too long for their keys. */
export const QUEUED_KEYS_MAX = 100_000;
/** Time after which the caller may retry, in seconds. A few thousand keys are created in this time. */
const RETRY_AFTER_S = 30;

/**
 * Accepts keys and queues them. They are created later in the background (queued-key-outcomes.ts), even if the root key is revoked in the
 * meantime.
 * @throws PublicError 429 `key_queue_full`, without accepting any of the keys, if the workspace would have too many queued keys.
 */
export async function queueKeys(
  actor: Actor<never, ChangeDeps & VaultDeps>,
  {
    api,
    migrationId,
    keys,
  }: { readonly api: ApiRow; readonly migrationId: string; readonly keys: readonly ForeignKey[] },
): Promise<void> {
  if (keys.length === 0) return;
  const { caller, deps } = actor;
  const prepared = keys.map((key) => prepareImport(actor, api, key));
  const requested = {
    workspaceId: caller.workspaceId,
    apiId: api.id,
    migrationId,
    requestedBy: writeAsked(actor),
    enqueuedAt: deps.nowMs(),
    keys: prepared.map((key) => ({
      keyId: key.id,
      hash: key.hash,
      definition: writeDefinition(key),
      sealed: key.sealed,
    })),
  };
  await withoutOutbox(deps.db, async (tx) => {
    if (!(await insertQueuedKeys(tx, requested, { waitingMax: QUEUED_KEYS_MAX }))) throw queueFull(keys.length);
    await insertAudit(tx, actor, [keysEnqueued(keys.length, { apiId: api.id, migrationId })]);
  });
}

const queueFull = (more: number): PublicError =>
  new PublicError(
    "key_queue_full",
    `Queuing ${more} more keys would exceed the maximum of ${QUEUED_KEYS_MAX} queued keys in the workspace.`,
    { retryAfterS: RETRY_AFTER_S },
  );
