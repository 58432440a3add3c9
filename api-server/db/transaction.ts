import { setTimeout as sleep } from "node:timers/promises";
import type { Pool, PoolClient, QueryResult } from "pg";
import type { Projection } from "../../edge/projection/contract.ts";
import type { RecordRef } from "../../edge/records.ts";
import { isRetryable } from "../../postgres/failures.ts";
import type { AuditEvent } from "./audit.ts";
import type { ReadEntry } from "./outbox.ts";

const ATTEMPTS_MAX = 5;
const RETRY_DELAY_MS = 10;

interface OutboxEntry {
  readonly workspace_id: string;
  readonly kind: ReadEntry["kind"];
  readonly id: string;
}

/**
 * Maximum number of cache entries that are dropped one by one after a transaction. After a larger transaction, this process clears its
 * complete cache, because listing the entries would take longer.
 */
const ENTRIES_MAX = 5000;

/**
 * Two statements in one round trip: the second one reads the outbox entries that the row triggers created in this transaction. This
 * process's cache drops the records of these entries, so that the caller sees the change in its next call. Because the triggers list the
 * changes, a procedure cannot forget one.
 */
const COMMIT = `select coalesce(k.workspace_id, o.workspace_id) as workspace_id,
                       case when k.id is null then o.kind else 'key' end as kind,
                       coalesce(k.hash, o.id) as id
                  from (select distinct workspace_id, kind, id
                          from outbox
                         where tx = pg_current_xact_id_if_assigned()
                         limit ${ENTRIES_MAX + 1}) o
                  left join keys k on o.kind = 'keyId' and k.id = o.id;
                commit`;

export interface JoinedTransaction {
  readonly tx: PoolClient;
  /** Audit events of all joined use cases. The enclosing use case writes them together before the commit. */
  readonly events: AuditEvent[];
  /** Registers work to run after the transaction has been committed or rolled back. */
  readonly afterwards: (work: () => Promise<void>) => void;
}

/** What a transaction needs: the database, this process's record cache, and a function that wakes the relay. */
export interface Transacting {
  readonly db: Pool;
  readonly projection: Pick<Projection, "drop" | "forgetAll">;
  /** Notifies the relay, in whichever process it runs, of new outbox entries. Returns immediately. */
  readonly wakeRelay: () => void;
  /** Open transaction of an enclosing use case. It commits or rolls back the work of this use case as well. */
  readonly joined?: JoinedTransaction;
}

/**
 * Runs `work` in one transaction: commits when it returns, rolls back when it throws. A transaction that lost a conflict, or generated an
 * existing id, is retried, so `work` must have no side effects, and must generate new ids in each attempt. On return, this process's cache
 * has dropped every record that the transaction changed. With `deps.joined`, runs `work` in that transaction instead.
 */
export async function inTransaction<T>(deps: Transacting, work: (tx: PoolClient) => Promise<T>): Promise<T> {
  if (deps.joined !== undefined) return await work(deps.joined.tx);
  for (let attempt = 1; ; attempt++) {
    try {
      return await attemptTransaction(deps, work);
    } catch (error) {
      if (attempt === ATTEMPTS_MAX || !isRetryable(error)) throw error;
      await sleep(RETRY_DELAY_MS * attempt * (0.5 + Math.random()));
    }
  }
}

async function attemptTransaction<T>(deps: Transacting, work: (tx: PoolClient) => Promise<T>): Promise<T> {
  const tx = await deps.db.connect();
  let broken: Error | undefined;
  try {
    await tx.query("begin");
    const result = await work(tx);
    // The types of `pg` do not declare that a query with several statements returns several results.
    const [entries] = (await tx.query(COMMIT)) as unknown as [QueryResult<OutboxEntry>];
    if (entries.rows.length > ENTRIES_MAX) deps.projection.forgetAll();
    else deps.projection.drop(entries.rows.flatMap(toRefs));
    if (entries.rows.length > 0) deps.wakeRelay();
    return result;
  } catch (error) {
    broken = await rollback(tx);
    throw error;
  } finally {
    // Closes a connection that failed to roll back, because it is unusable.
    tx.release(broken);
  }
}

/**
 * Returns the records of an outbox entry. The list is empty for an entry with the id of a key that the same transaction deleted, because
 * another entry contains the hash of that key.
 */
const toRefs = ({ workspace_id, kind, id }: OutboxEntry): RecordRef[] =>
  kind === "keyId" || kind === "everything" ? [] : [{ workspaceId: workspace_id, kind, id }];

async function rollback(tx: PoolClient): Promise<Error | undefined> {
  try {
    await tx.query("rollback");
    return undefined;
  } catch (error) {
    return error instanceof Error ? error : new Error("rollback failed", { cause: error });
  }
}
