import type { Pool, PoolClient } from "pg";
import type { TakenEvents } from "../../edge/events/contract.ts";
import { copyRows } from "../../postgres/copy-rows.ts";
import { failureCode, isDatabaseUnavailable, isRetryable, isWaitOver, limitWaiting } from "../../postgres/failures.ts";
import { withoutOutbox } from "../../postgres/unmarked-transaction.ts";
import { acceptedTimes, cleanLine } from "../accepted-events.ts";
import type { Ingested } from "../contract.ts";
import { raiseLastUsed } from "../last-used.ts";
import { type InsertedLines, insertEventLines } from "./event-lines.ts";
import { keepPartitions } from "./maintain.ts";
import { type PlainBatch, readPlainBatch } from "./plain-batch.ts";
import { insertQueued } from "./rollup-queue.ts";

/*
 * Stores a batch of one workspace's events. Batches are delivered at least once; the primary key deduplicates events. New events are queued
 * for the roll-ups in the same transaction.
 */

const ATTEMPTS_MAX = 3;
/** Maximum number of transactions for a batch that contains events that the database rejects. */
const ATTEMPTS_AT_POISON = 30;
/** Timeouts of a transaction. They bound the delay that locked rows of one workspace cause for the others. */
const BOUNDS = { lockMsMax: 2_000, statementMsMax: 10_000, idleMsMax: 10_000 };

/** Maximum number of cached keys. With the cache, the last use of a key is updated at most once per minute instead of for each event. */
const KEYS_REMEMBERED_MAX = 100_000;

/** Last use of each key that this process has stored, by workspace and key, in Unix ms rounded to the minute. */
export type RecordedUsage = Map<string, number>;

/**
 * Stores a batch. With `noted`, a batch of new and plain events, the usual case, is stored by COPY. If any event is a duplicate or not
 * plain, the transaction rolls back and the per-event statement runs instead. COPY halves the CPU time in Postgres (11 instead of 24 µs per
 * event) but quadruples it in this process (12 instead of 3 µs), so only a process that serves no requests uses it. Throws like
 * `ingestAny`.
 */
export async function ingestBatch(
  db: Pool,
  events: TakenEvents,
  { nowMs, noted }: { nowMs: number; noted?: RecordedUsage | undefined },
): Promise<Ingested> {
  if (noted === undefined) return ingestAny(db, events, nowMs);
  const { workspaceId } = events;
  const plain = readPlainBatch(events.lines, { workspaceId, ...acceptedTimes(nowMs) });
  if (plain === undefined) return ingestAny(db, events, nowMs);
  try {
    await copyPlain(db, plain, { workspaceId, noted });
    return { stored: plain.events, late: 0, omitted: 0 };
  } catch (error) {
    if (isDatabaseUnavailable(error) || isWaitOver(error)) throw error;
    return ingestAny(db, events, nowMs);
  }
}

async function copyPlain(
  db: Pool,
  plain: PlainBatch,
  { workspaceId, noted }: { workspaceId: string; noted: RecordedUsage },
): Promise<void> {
  const used = [...plain.lastUses]
    .filter(([keyId, lastUsedAt]) => lastUsedAt > (noted.get(`${workspaceId} ${keyId}`) ?? 0))
    .map(([keyId, lastUsedAt]) => ({ workspaceId, keyId, lastUsedAt }));
  await withoutOutbox(db, async (tx) => {
    await limitWaiting(tx, BOUNDS);
    if (plain.verifications !== "") await copyRows(tx, { text: COPY_VERIFICATIONS, rows: plain.verifications });
    if (plain.ratelimits !== "") await copyRows(tx, { text: COPY_RATELIMITS, rows: plain.ratelimits });
    const { events, groups, verificationGroups: verifications, ratelimitGroups: ratelimits } = plain;
    await insertQueued(tx, { workspaceId, events, groups, verifications, ratelimits });
    if (used.length > 0) await raiseLastUsed(tx, used);
  });
  if (noted.size + used.length > KEYS_REMEMBERED_MAX) noted.clear();
  for (const { keyId, lastUsedAt } of used) noted.set(`${workspaceId} ${keyId}`, lastUsedAt);
}

const COPY_VERIFICATIONS = `copy verification_events (day, id, request_id, time, workspace_id, key_space_id, api_id, key_id,
  identity_id, external_id, outcome, tags, source, app_id, region, spent_credits, latency_ms) from stdin`;
const COPY_RATELIMITS = `copy ratelimit_events (day, id, request_id, time, workspace_id, namespace_id, identifier, passed,
  latency_ms, override_id, max_count, remaining, reset_at, cost) from stdin`;

/**
 * Stores the events in one statement. If the database rejects it, cleans each event and isolates those that are still rejected. Throws if
 * the events are not the cause, for example because the database is unreachable or rows are locked.
 */
async function ingestAny(db: Pool, events: TakenEvents, nowMs: number): Promise<Ingested> {
  const { workspaceId, lines } = events;
  const insert = (some: string) =>
    inPlainTransaction(db, nowMs, (tx) => insertEventLines(tx, { workspaceId, lines: some, ...acceptedTimes(nowMs) }));
  try {
    return toIngested(await insert(lines));
  } catch (error) {
    if (!isOfTheEvents(error)) throw error;
    const cleaned = [...events].map(cleanLine);
    const ingested = await insertWhatCan(insert, cleaned, { attempts: ATTEMPTS_AT_POISON });
    const unreadable = lines.split("\n").length - cleaned.length;
    return { ...ingested, omitted: ingested.omitted + unreadable };
  }
}

type Insert = (lines: string) => Promise<InsertedLines>;

/**
 * Inserts a batch. A rejected batch is halved repeatedly until only the rejected events are skipped. After too many rejections, each part
 * that is still rejected is skipped completely.
 */
async function insertWhatCan(insert: Insert, lines: readonly string[], left: { attempts: number }): Promise<Ingested> {
  if (lines.length === 0) return NONE;
  try {
    return toIngested(await insert(lines.join("\n")));
  } catch (error) {
    left.attempts -= 1;
    if (!isOfTheEvents(error)) throw error;
    if (lines.length === 1 || left.attempts <= 0) return { ...NONE, omitted: lines.length };
    const half = Math.ceil(lines.length / 2);
    const first = await insertWhatCan(insert, lines.slice(0, half), left);
    const second = await insertWhatCan(insert, lines.slice(half), left);
    return {
      stored: first.stored + second.stored,
      late: first.late + second.late,
      omitted: first.omitted + second.omitted,
    };
  }
}

const NONE: Ingested = { stored: 0, late: 0, omitted: 0 };

const toIngested = ({ lines, stored, late, accepted }: InsertedLines): Ingested => ({
  stored,
  late,
  omitted: lines - late - accepted,
});

/** Returns whether the events themselves caused the error. Timeouts are caused by locked rows or by the database. */
const isOfTheEvents = (error: unknown): boolean =>
  !isDatabaseUnavailable(error) && !isRetryable(error) && !isWaitOver(error);

/** Error code for a row without a partition. A violated check constraint has the same code, but the event tables have none. */
const CHECK_VIOLATION = "23514";

/**
 * Runs a transaction without outbox entries, because gates do not cache the rows. Serialization failures are retried here, because the
 * stream would deliver the events again only a minute later.
 */
async function inPlainTransaction<T>(db: Pool, nowMs: number, work: (tx: PoolClient) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await withoutOutbox(db, async (tx) => {
        await limitWaiting(tx, BOUNDS);
        return work(tx);
      });
    } catch (error) {
      const lacksPartition = failureCode(error) === CHECK_VIOLATION;
      if (attempt === ATTEMPTS_MAX || !(lacksPartition || isRetryable(error))) throw error;
      if (lacksPartition) await keepPartitions(db, nowMs);
    }
  }
}
