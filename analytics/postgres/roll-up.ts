import type { Pool } from "pg";
import { utcDate } from "../../core/utc-date.ts";
import { tryLockInTransaction } from "../../postgres/advisory-locks.ts";
import { limitWaiting } from "../../postgres/failures.ts";
import { withoutOutbox } from "../../postgres/unmarked-transaction.ts";
import { type AnalyticsRetention, daysKept, keptFromMs } from "../retention.ts";
import { type AnalyticsOf, BUCKETS } from "../tables.ts";
import { ROLL_UP } from "./roll-up-text.ts";
import { listQueued, type QueueChoice } from "./rollup-queue.ts";

/**
 * Timeouts of a roll-up. It has to wait for the locks of another roll-up only while a process that has lost the roll-up lock is still
 * shutting down.
 */
const BOUNDS = { lockMsMax: 2_000, statementMsMax: 30_000, idleMsMax: 10_000 };
/** Memory for sorting the groups of a batch; larger sorts use temporary files. */
const WORK_MEMORY = "32MB";
const KINDS: readonly AnalyticsOf[] = ["verifications", "ratelimits"];

export interface RolledUp {
  readonly workspaceIds: readonly string[];
  readonly events: number;
  /** Whether the queue has more batches. */
  readonly isMore: boolean;
}

const NOTHING: RolledUp = { workspaceIds: [], events: 0, isMore: false };

/** Failure of one batch. `workspaceIds` are the workspaces of the batch. */
export class RollUpFailed extends Error {
  override name = "RollUpFailed";
  readonly workspaceIds: readonly string[];

  constructor(workspaceIds: readonly string[], options: ErrorOptions) {
    super("rolling up usage events", options);
    this.workspaceIds = workspaceIds;
  }
}

/**
 * Adds one queued batch to all roll-ups and removes it from the queue in one transaction. Does nothing while another process rolls up.
 * Counts that are past retention have no partition and are discarded. Throws `RollUpFailed`.
 */
export async function rollUpBatch(
  db: Pool,
  choice: QueueChoice,
  kept: { nowMs: number; retention: AnalyticsRetention },
): Promise<RolledUp> {
  let workspaceIds: string[] = [];
  try {
    return await withoutOutbox(db, async (tx) => {
      await limitWaiting(tx, BOUNDS);
      // Disables JIT compilation, which costs more than it saves for a statement of about a second.
      await tx.query("select set_config('jit', 'off', true), set_config('work_mem', $1, true)", [WORK_MEMORY]);
      if (!(await tryLockInTransaction(tx, "rollUp"))) return NOTHING;
      const { portions, isMore } = await listQueued(tx, choice);
      if (portions.length === 0) return NOTHING;
      workspaceIds = [...new Set(portions.map(({ workspaceId }) => workspaceId))];
      const values = [portions.map(({ id }) => id), ...partitionsFrom(kept)];
      const { rows } = await tx.query<{ events: number }>({ name: "roll-up", text: ROLL_UP, values });
      return { workspaceIds, events: rows[0]?.events ?? 0, isMore };
    });
  } catch (cause) {
    throw new RollUpFailed(workspaceIds, { cause });
  }
}

/** Returns the parameters of `ROLL_UP`: for each kind and level, the start of the first partition. */
const partitionsFrom = ({ nowMs, retention }: { nowMs: number; retention: AnalyticsRetention }): string[] =>
  KINDS.flatMap((of) =>
    BUCKETS.map((bucket) => {
      const date = utcDate(keptFromMs(daysKept(retention, of, bucket), nowMs));
      return bucket === "month" ? `${date.slice(0, 7)}-01` : date;
    }),
  );

/*
 * Delay of events before a roll-up. A roll-up writes one row for all events of a bucket with the same dimensions, so larger roll-ups cost
 * less per event. With few events, a roll-up takes milliseconds and events wait one second. Under load, roll-ups are limited to a fixed
 * share of the time, so events wait longer.
 *
 * The delay depends on the age of the oldest event, not on the time of the last roll-up, so that several processes together roll up as
 * often as a single process would.
 */

const WAIT_MS = { min: 1_000, max: 30_000 };
/**
 * Wait before the next roll-up, as a multiple of the last one's duration. Roll-ups thus use at most a quarter of the time of one
 * connection.
 */
const TIMES_THE_RUN = 3;

/** Returns how old the oldest event must be before the next roll-up starts, if the last roll-up took `ranMs`. */
export const waitAfter = (ranMs: number): number => Math.min(WAIT_MS.max, Math.max(WAIT_MS.min, TIMES_THE_RUN * ranMs));
