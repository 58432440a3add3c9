import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { dueRefills, refilledAmount } from "../../core/credits/refill.ts";
import { CountersUnavailable } from "../../edge/counters/contract.ts";
import { LogThrottle } from "../../edge/log-throttle.ts";
import { tryLock, unlock } from "../../postgres/advisory-locks.ts";
import { isDatabaseUnavailable } from "../../postgres/failures.ts";
import { insertAuditEvents, SYSTEM_ACTOR } from "../db/audit.ts";
import { listRefillCandidates, lockRefills, type RefillRow, setLastRefill } from "../db/key-credits.ts";
import { noteRefill } from "../db/key-usage.ts";
import { countOutbox } from "../db/outbox.ts";
import { inTransaction, type Transacting } from "../db/transaction.ts";
import type { CreditKey, CreditService } from "./service.ts";

/*
 * Refills the credits of each key at most once per UTC day (api-v2.md section 10.2). The day is also recorded for keys that are not due, so
 * that a second run on the same day skips them.
 *
 * Keys are refilled in batches, one transaction each, so a million keys take only minutes. A failure affects only one key: a failed batch
 * is repeated key by key.
 */

/** Maximum number of rows that are locked together. It is limited because other transactions wait for these locks. */
const BATCH = 500;
/** Number of concurrent batches: while one waits for a database, another one is computed. */
const AT_ONCE = 2;
/** Number of pending outbox entries at which refills pause, so that changes for which callers wait are relayed first. */
const OUTBOX_DEEP = 5000;

interface RefillDeps extends Transacting {
  readonly credits: Pick<CreditService, "change" | "reopen">;
  readonly nowMs: () => number;
  readonly randomBytes: (size: number) => Uint8Array;
  readonly log: Logger;
}

/** Numbers of refilled keys and of failed keys. Failed keys remain due, so the next run retries them. */
export interface RefillRun {
  readonly refilled: number;
  readonly failed: number;
}

interface RefillOptions {
  /** Current UTC date, `YYYY-MM-DD`. */
  readonly today: string;
  readonly isClosing: () => boolean;
}

/**
 * Refills every key that is due on `today` or before; `onBatch` is called with the total so far. Returns `undefined` if another process is
 * refilling. A key that cannot be refilled does not affect the others. Throws if a database is unreachable.
 */
export async function runRefill(
  deps: RefillDeps,
  {
    today,
    isClosing = () => false,
    onBatch,
  }: { today: string; isClosing?: () => boolean; onBatch?: (soFar: RefillRun) => void },
): Promise<RefillRun | undefined> {
  const session = await deps.db.connect();
  try {
    if (!(await tryLock(session, "refill"))) return undefined;
    const run = { refilled: 0, failed: 0 };
    const batches = listBatches(deps, { today, isClosing });
    const throttle = new LogThrottle();
    const work = async (): Promise<void> => {
      // Both workers share the generator of batches. An error in this loop ends the generator, and thereby the other worker.
      for await (const batch of batches) {
        const { refilled, failed } = await refillBatch({ ...deps, throttle }, batch, today);
        run.refilled += refilled;
        run.failed += failed;
        onBatch?.(run);
      }
    };
    const ended = await Promise.allSettled(Array.from({ length: AT_ONCE }, work));
    for (const outcome of ended) if (outcome.status === "rejected") throw outcome.reason;
    await unlock(session, "refill");
    return run;
  } finally {
    // Closes the connection even after a failure: it holds the lock, so the pool must not reuse it.
    session.release(true);
  }
}

async function* listBatches(deps: RefillDeps, { today, isClosing }: RefillOptions): AsyncGenerator<RefillRow[]> {
  let after: { lastRefillOn: string; keyId: string } | undefined;
  while (!isClosing()) {
    await untilOutboxIsShallow(deps, isClosing);
    const batch = await listRefillCandidates(deps.db, { today, after, max: BATCH });
    const last = batch.at(-1);
    if (last === undefined) return;
    yield batch;
    if (batch.length < BATCH) return;
    after = { lastRefillOn: last.last_refill_on, keyId: last.key_id };
  }
}

async function refillBatch(
  deps: RefillDeps & { readonly throttle: LogThrottle },
  batch: readonly RefillRow[],
  today: string,
): Promise<RefillRun> {
  const due = batch.filter((row) => timesDue(row, today) > 0);
  const idle = batch.filter((row) => !due.includes(row)).map((row) => row.key_id);
  if (idle.length > 0) await setLastRefill(deps.db, { keyIds: idle, today });
  return due.length === 0 ? { refilled: 0, failed: 0 } : refillOrSplit(deps, due, today);
}

/** Refills all keys in one transaction. If that fails, refills each key separately, so that only the failing keys are skipped. */
async function refillOrSplit(
  deps: RefillDeps & { readonly throttle: LogThrottle },
  due: readonly RefillRow[],
  today: string,
): Promise<RefillRun> {
  try {
    return { refilled: await refillAll(deps, due, today), failed: 0 };
  } catch (error) {
    if (isDatabaseUnavailable(error) || error instanceof CountersUnavailable) throw error;
    if (due.length === 1) {
      const keys = deps.throttle.note("failed");
      const message = "a key was not refilled; the next run retries it";
      if (keys !== undefined) deps.log.error({ err: error, keyId: due[0]?.key_id, keys, today }, message);
      return { refilled: 0, failed: 1 };
    }
    const run = { refilled: 0, failed: 0 };
    for (const row of due) {
      const { refilled, failed } = await refillOrSplit(deps, [row], today);
      run.refilled += refilled;
      run.failed += failed;
    }
    return run;
  }
}

/**
 * Refills keys and writes the audit rows in one transaction. Returns the number of refilled keys, not counting those that another process
 * has already refilled.
 */
async function refillAll(deps: RefillDeps, rows: readonly RefillRow[], today: string): Promise<number> {
  let closed: readonly CreditKey[] = [];
  try {
    return await inTransaction(deps, async (tx) => {
      const refilledAt = deps.nowMs();
      // Locks the keys before their credits, as any change of a key does; the reverse order could deadlock. If another process has just
      // refilled a key, overwriting the time of its last refill is harmless, because both times are about the same.
      await noteRefill(tx, { keys: rows.map(toKey), refilledAt });
      const last = new Map((await lockRefills(tx, rows.map(toKey))).map((row) => [row.key_id, row.last_refill_on]));
      const mine = rows.filter((row) => last.get(row.key_id) === row.last_refill_on);
      if (mine.length === 0) return 0;
      closed = mine.map(toKey);
      closed = await deps.credits.change(tx, mine.map(toKey), (current, { lastRefillOn }) => {
        if (current?.refillAmount == null) return current;
        const { remaining, refillAmount: amount, refillDay } = current;
        const times = timesDue({ last_refill_on: lastRefillOn, refill_day: refillDay }, today);
        return { ...current, remaining: refilledAmount({ remaining, amount, times }) };
      });
      await setLastRefill(tx, { keyIds: mine.map((row) => row.key_id), today });
      await writeAudit(tx, deps, mine, refilledAt);
      return mine.length;
    });
  } finally {
    if (closed.length > 0) await deps.credits.reopen(closed);
  }
}

const toKey = (row: RefillRow) => ({
  workspaceId: row.workspace_id,
  keyId: row.key_id,
  lastRefillOn: row.last_refill_on,
});

async function writeAudit(
  tx: Parameters<typeof insertAuditEvents>[0],
  { randomBytes }: RefillDeps,
  rows: readonly RefillRow[],
  timeMs: number,
): Promise<void> {
  const byWorkspace = Map.groupBy(rows, (row) => row.workspace_id);
  for (const [workspaceId, ofWorkspace] of byWorkspace) {
    const context = { workspaceId, actor: SYSTEM_ACTOR, timeMs, randomBytes, areOneCall: false };
    await insertAuditEvents(
      tx,
      context,
      ofWorkspace.map((row) => ({
        event: "key.update",
        description: `Refilled key ${row.key_id}`,
        targets: [
          { type: "key", id: row.key_id },
          { type: "api", id: row.api_id },
        ],
      })),
    );
  }
}

function timesDue(
  { last_refill_on: lastRefillOn, refill_day: refillDay }: Pick<RefillRow, "last_refill_on" | "refill_day">,
  today: string,
): number {
  return refillDay === null
    ? dueRefills({ interval: "daily", lastRefillOn, today })
    : dueRefills({ interval: "monthly", refillDay, lastRefillOn, today });
}

async function untilOutboxIsShallow({ db }: RefillDeps, isClosing: () => boolean): Promise<void> {
  while (!isClosing() && (await countOutbox(db, { max: OUTBOX_DEEP })) >= OUTBOX_DEEP) await sleep(100);
}
