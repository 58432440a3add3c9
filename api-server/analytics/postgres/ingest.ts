import type { Pool, PoolClient } from "pg";
import { DAY_MS, utcDate } from "../../../core/utc-date.ts";
import type { TakenEvents, UsageEvent, VerificationEvent } from "../../../edge/events/contract.ts";
import { isDatabaseUnavailable, isRetryable, isWaitOver } from "../../store/failures.ts";
import { raiseLastUsed } from "../../store/key-usage.ts";
import { inUnmarkedTransaction } from "../../store/unmarked-transaction.ts";
import { limitWaiting } from "../../store/waiting.ts";
import { insertEventLines } from "./event-lines.ts";
import { insertRatelimitEvents, insertVerificationEvents } from "./events.ts";
import { dropPartitionsBefore, ensurePartitions } from "./partitions.ts";

/*
 * Stores usage events from the shared store in Postgres. They are delivered at least once; the primary key makes that exactly once.
 * They are acknowledged only after the commit.
 */

const MINUTE_MS = 60_000;
/** Days for which raw events are kept. */
export const RETENTION_DAYS = 35;
const DAYS_AHEAD = 2;
const ATTEMPTS_MAX = 3;
/** Transactions that one portion may spend on events that the database refuses. */
const ATTEMPTS_AT_POISON = 30;
/** Locked rows of one workspace must not delay the events of others for long. */
const BOUNDS = { lockMsMax: 2_000, statementMsMax: 10_000 };

/**
 * Stores the events of one workspace as a whole; if the database refuses that, checks each. Returns how many
 * could not be stored. Throws when the events are not the cause: the database is unreachable, or rows are locked.
 */
export async function storeTaken(db: Pool, events: TakenEvents, nowMs: number): Promise<number> {
  const { workspaceId, lines } = events;
  try {
    await inPlainTransaction(db, (tx) => insertEventLines(tx, { workspaceId, lines, ...keptTimes(nowMs) }));
    return 0;
  } catch (error) {
    if (!isOfTheEvents(error)) throw error;
    return storeWhatCan(db, [...events], nowMs, { attempts: ATTEMPTS_AT_POISON });
  }
}

/** Halves a refused batch until it is one event, which is left out. After too many refusals, every refused batch is left out. */
async function storeWhatCan(
  db: Pool,
  events: readonly UsageEvent[],
  nowMs: number,
  left: { attempts: number },
): Promise<number> {
  try {
    await storeEvents(db, events, nowMs);
    return 0;
  } catch (error) {
    left.attempts -= 1;
    if (!isOfTheEvents(error)) throw error;
    if (events.length === 1 || left.attempts <= 0) return events.length;
    const half = Math.ceil(events.length / 2);
    const first = await storeWhatCan(db, events.slice(0, half), nowMs, left);
    return first + (await storeWhatCan(db, events.slice(half), nowMs, left));
  }
}

/** A timeout is caused by locked rows or by the database. */
const isOfTheEvents = (error: unknown): boolean =>
  !isDatabaseUnavailable(error) && !isRetryable(error) && !isWaitOver(error);

const keptTimes = (nowMs: number) => ({
  afterMs: nowMs - RETENTION_DAYS * DAY_MS,
  beforeMs: nowMs + DAYS_AHEAD * DAY_MS,
});

/** Stores events in one transaction. Leaves out those whose day has no partition any more, or is in the future. */
export async function storeEvents(db: Pool, events: Iterable<UsageEvent>, nowMs: number): Promise<void> {
  const { afterMs, beforeMs } = keptTimes(nowMs);
  const kept = [...events].filter(({ timeMs }) => timeMs > afterMs && timeMs < beforeMs);
  const verifications = kept.filter((event) => event.type === "verification");
  const ratelimits = kept.filter((event) => event.type === "ratelimit");
  await inPlainTransaction(db, async (tx) => {
    await ensurePartitions(tx, [...new Set(kept.map(({ timeMs }) => utcDate(timeMs)))].sort());
    const fresh = await insertVerificationEvents(tx, verifications);
    await insertRatelimitEvents(tx, ratelimits);
    await raiseLastUsed(tx, lastUses(verifications.filter(({ id }) => fresh.has(id))));
  });
}

/** Creates partitions for today and the next days, and drops those of days that are not kept any more. */
export async function keepPartitions(db: Pool, nowMs: number): Promise<void> {
  await inPlainTransaction(db, async (tx) => {
    const dates = Array.from({ length: DAYS_AHEAD + 1 }, (_, days) => utcDate(nowMs + days * DAY_MS));
    await ensurePartitions(tx, dates);
    await dropPartitionsBefore(tx, utcDate(nowMs - RETENTION_DAYS * DAY_MS));
  });
}

/** To the minute, which is exact enough for `lastUsedAt` and avoids most updates of the row. Sorted by key id. */
function lastUses(events: readonly VerificationEvent[]): LastUse[] {
  const latest = new Map<string, LastUse>();
  for (const { workspaceId, keyId, timeMs } of events) {
    const minute = timeMs - (timeMs % MINUTE_MS);
    // An event may concern only a key of its own workspace, because a pod can write any id.
    const place = `${keyId} ${workspaceId}`;
    if (minute > (latest.get(place)?.lastUsedAt ?? 0)) latest.set(place, { workspaceId, keyId, lastUsedAt: minute });
  }
  // Two ingesters that lock rows in the same order wait for each other and do not deadlock.
  return [...latest].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, use]) => use);
}

interface LastUse {
  readonly workspaceId: string;
  readonly keyId: string;
  readonly lastUsedAt: number;
}

/**
 * These rows leave no marks in the outbox, and are not cached. A transaction that lost against another one is retried here,
 * because the store would deliver its events again only a minute later.
 */
async function inPlainTransaction(db: Pool, work: (tx: PoolClient) => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await inUnmarkedTransaction(db, async (tx) => {
        await limitWaiting(tx, BOUNDS);
        await work(tx);
      });
    } catch (error) {
      if (attempt === ATTEMPTS_MAX || !isRetryable(error)) throw error;
    }
  }
}
