import { setTimeout as sleep } from "node:timers/promises";
import { dueRefills, refilledAmount } from "../../core/credits/refill.ts";
import type { Deps } from "../deps.ts";
import { tryLock, unlock } from "../store/advisory-locks.ts";
import { insertAuditEvents, SYSTEM_ACTOR } from "../store/audit.ts";
import { isDatabaseUnavailable } from "../store/failures.ts";
import { findLastRefill, listRefillCandidates, type RefillRow, setLastRefill } from "../store/key-credits.ts";
import { raiseUpdatedAt } from "../store/key-usage.ts";
import { countOutbox } from "../store/outbox.ts";
import { inTransaction, type Transacting } from "../store/transaction.ts";

/*
 * Credits that come back (api/v2 section 10.2): once per key and UTC date, whoever runs it how often. A date on which nothing was
 * due is noted too, so that a day's second run finds nothing to look at.
 */

const PAGE = 500;
/** Refills wait while this many marks do: changes that somebody is waiting for go first. */
const OUTBOX_DEEP = 5000;

type RefillDeps = Transacting & Pick<Deps, "credits" | "nowMs" | "randomBytes" | "log">;

/** How many keys were refilled, and how many could not be: those are still due, and the next run meets them again. */
export interface RefillRun {
  readonly refilled: number;
  readonly failed: number;
}

/**
 * Refills every key that is due on `today` (`YYYY-MM-DD`, UTC) or before. Returns undefined while another process does it.
 * A key that cannot be refilled keeps no other one from it. Throws when the database is away.
 */
export async function runRefill(
  deps: RefillDeps,
  { today, isClosing = () => false }: { today: string; isClosing?: () => boolean },
): Promise<RefillRun | undefined> {
  const session = await deps.db.connect();
  try {
    if (!(await tryLock(session, "refill"))) return undefined;
    let refilled = 0;
    let failed = 0;
    for (let after = ""; !isClosing(); ) {
      await untilOutboxIsShallow(deps, isClosing);
      const page = await listRefillCandidates(deps.db, { today, after, max: PAGE });
      const due = page.filter((row) => timesDue(row, today) > 0);
      for (const row of due) {
        const outcome = await tryRefillKey(deps, row, today);
        if (outcome === "refilled") refilled += 1;
        if (outcome === "failed") failed += 1;
      }
      const idle = page.filter((row) => !due.includes(row)).map((row) => row.key_id);
      if (idle.length > 0) await setLastRefill(deps.db, { keyIds: idle, today });
      if (page.length < PAGE) break;
      after = page.at(-1)?.key_id ?? after;
    }
    await unlock(session, "refill");
    return { refilled, failed };
  } finally {
    // The lock is the connection's: whatever failed, the pool must not lend it to anybody else.
    session.release(true);
  }
}

async function tryRefillKey(deps: RefillDeps, row: RefillRow, today: string) {
  try {
    return (await refillKey(deps, row, today)) ? "refilled" : "overtaken";
  } catch (error) {
    if (isDatabaseUnavailable(error)) throw error;
    const key = { workspaceId: row.workspace_id, keyId: row.key_id };
    deps.log.error({ err: error, ...key, today }, "a key was not refilled; the next run tries again");
    return "failed";
  }
}

/** One key in one transaction, audit row included; false when somebody else was first. */
async function refillKey(deps: RefillDeps, row: RefillRow, today: string): Promise<boolean> {
  const key = { workspaceId: row.workspace_id, keyId: row.key_id };
  try {
    await inTransaction(deps, async (tx) => {
      const updatedAt = deps.nowMs();
      // First, because whoever changes a key locks its row before its credits: the other way round the two would wait for
      // one another in a circle.
      await raiseUpdatedAt(tx, { ...key, updatedAt });
      await deps.credits.change(tx, [key], (current) => {
        if (current?.refillAmount == null) return current;
        const { remaining, refillAmount: amount, refillDay } = current;
        const times = timesDue({ last_refill_on: row.last_refill_on, refill_day: refillDay }, today);
        return { ...current, remaining: refilledAmount({ remaining, amount, times }) };
      });
      // Only now the row is locked: somebody else may have been first since the page was read.
      const lastRefillOn = await findLastRefill(tx, key);
      if (lastRefillOn !== row.last_refill_on) throw new Overtaken();
      await setLastRefill(tx, { keyIds: [key.keyId], today });
      await insertAuditEvents(tx, auditContext(deps, key.workspaceId, updatedAt), [
        {
          event: "key.update",
          description: `Refilled key ${key.keyId}`,
          targets: [
            { type: "key", id: key.keyId },
            { type: "api", id: row.api_id },
          ],
        },
      ]);
    });
    return true;
  } catch (error) {
    if (error instanceof Overtaken) return false;
    throw error;
  } finally {
    await deps.credits.settle([key]);
  }
}

class Overtaken extends Error {}

function timesDue(
  { last_refill_on: lastRefillOn, refill_day: refillDay }: Pick<RefillRow, "last_refill_on" | "refill_day">,
  today: string,
): number {
  return refillDay === null
    ? dueRefills({ interval: "daily", lastRefillOn, today })
    : dueRefills({ interval: "monthly", refillDay, lastRefillOn, today });
}

const auditContext = (deps: RefillDeps, workspaceId: string, timeMs: number) => ({
  workspaceId,
  actor: SYSTEM_ACTOR,
  timeMs,
  randomBytes: deps.randomBytes,
});

async function untilOutboxIsShallow({ db }: RefillDeps, isClosing: () => boolean): Promise<void> {
  while (!isClosing() && (await countOutbox(db, { max: OUTBOX_DEEP })) >= OUTBOX_DEEP) await sleep(100);
}
