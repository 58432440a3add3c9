import { performance } from "node:perf_hooks";
import type { Logger } from "pino";
import { Counter, Gauge, type Registry } from "prom-client";
import { backoffMs } from "../../../core/backoff.ts";
import { type ErrorKind, PublicError } from "../../../core/errors.ts";
import { defineMetrics, exported } from "../../../core/metric.ts";
import { isUnavailableForAll, limitWaiting } from "../../../postgres/failures.ts";
import type { RunFairly } from "../../background/workspace-turns.ts";
import {
  listWorkspacesWithDueKeys,
  lockDueKeys,
  measureQueuedKeys,
  postponeQueuedKey,
  type QueuedKeyRow,
} from "../../db/queued-keys.ts";
import { inTransaction, type Transacting } from "../../db/transaction.ts";
import { createQueuedKeys, giveUpQueuedKey, refOf } from "./queued-key-outcomes.ts";
import { requestIdOf } from "./queued-key-record.ts";

/*
 * Creates the keys that `migrations.enqueueKeys` of v1 has accepted. The states of a queued key:
 *
 *   waiting ── due ──► created: the row is removed in the transaction that creates the key, so a crash never creates it twice
 *                 └──► failed: waits twice as long as the time before; after the last attempt, or if its API is deleted, it is removed and logged
 *
 * Several keys share a transaction. If it fails, each key is tried separately, so that an error of one key does not affect the others.
 * Every api-server does this concurrently and skips keys that another one has locked. Workspaces take turns. While Postgres is unavailable,
 * no failure is counted.
 */

/**
 * Maximum number of retries. They follow 2 s, 4 s, … 1,024 s after the previous attempt, so a key that cannot be created is abandoned after
 * 34 minutes.
 */
export const RETRIES_MAX = 10;
/** Backoff without jitter: keys are tried one at a time, so keys that failed together are not retried together. */
const RETRY = { firstMs: 2_000, maxMs: 2_000 * 2 ** (RETRIES_MAX - 1), random: () => 0 };
/**
 * Errors that mean that the API or workspace was deleted. They end the retries: ids are never reused, so every further attempt would fail
 * as well.
 */
const FINAL: ReadonlySet<string> = new Set<ErrorKind>(["api_not_found"]);

/** Limits of a time slice. The slice ends when it reaches either of them. */
const TURN = { batchesMax: 10, msMax: 500 } as const;
/** Number of keys per transaction. Some statements run once per transaction; divided among 25 keys, they cost little per key. */
const BATCH = 25;
/** Timeouts of a transaction. */
const BOUNDS = { lockMsMax: 2_000, statementMsMax: 5_000, idleMsMax: 10_000 } as const;
const MEASURED_MAX = 1_000_000;
/** Maximum length of the reason in a log line. An error may list many missing names. */
const DETAIL_CHARACTERS_MAX = 1_000;

interface KeyQueueDeps extends Transacting {
  readonly nowMs: () => number;
  readonly randomBytes: (size: number) => Uint8Array;
  readonly log: Pick<Logger, "error" | "warn">;
}

export const KEY_QUEUE_METRICS = defineMetrics({
  waiting: {
    name: "postern_key_queue_waiting",
    type: "gauge",
    help: "Accepted keys that wait to be created, in all workspaces",
    unit: "keys",
    bad: "Constant (normally falls by hundreds per second): see `postern_key_queue_failures_total`.",
  },
  oldest: {
    name: "postern_key_queue_oldest_seconds",
    type: "gauge",
    help: "Waiting time of the oldest accepted key; 0 if the queue is empty",
    unit: "seconds",
    bad: "Above 300 (PosternKeyQueueDelayed).",
  },
  created: {
    name: "postern_key_queue_created_total",
    type: "counter",
    help: "Accepted keys created by this process",
    unit: "keys",
    bad: "No increase while keys wait: see the next metric.",
  },
  failures: {
    name: "postern_key_queue_failures_total",
    type: "counter",
    help: "Failed attempts to create an accepted key, by error kind",
    unit: "tries",
    labels: { reason: "the kind of an error, such as `conflict`" },
    bad: "Rising: fix the reason. Each key is tried up to ten times.",
  },
  givenUp: {
    name: "postern_key_queue_given_up_total",
    type: "counter",
    help: "Accepted keys that were abandoned, by the error kind of the last attempt",
    unit: "keys",
    labels: { reason: "the kind of an error, such as `conflict`" },
    bad: "Any increase (PosternKeyQueueFailed).",
  },
});

export class KeyQueue {
  readonly #deps: KeyQueueDeps;
  readonly #runFairly: RunFairly;
  readonly #waiting: Gauge;
  readonly #oldest: Gauge;
  readonly #created: Counter;
  readonly #failures: Counter<"reason">;
  readonly #givenUp: Counter<"reason">;
  #isClosing = false;

  constructor({ deps, runFairly, metrics }: { deps: KeyQueueDeps; runFairly: RunFairly; metrics: Registry }) {
    this.#deps = deps;
    this.#runFairly = runFairly;
    const registers = [metrics];
    const of = KEY_QUEUE_METRICS;
    this.#waiting = new Gauge({ ...exported(of.waiting), registers });
    this.#oldest = new Gauge({ ...exported(of.oldest), registers });
    this.#created = new Counter({ ...exported(of.created), registers });
    this.#failures = new Counter({ ...exported(of.failures), registers });
    this.#givenUp = new Counter({ ...exported(of.givenUp), registers });
  }

  /** Runs one time slice per workspace with due keys. Returns whether keys remain due. */
  async round(): Promise<boolean> {
    const { db, nowMs } = this.#deps;
    const workspaceIds = await listWorkspacesWithDueKeys(db, { nowMs: nowMs() });
    return this.#runFairly(workspaceIds, (workspaceId) => this.#turn(workspaceId));
  }

  /** Reads the values of the gauges. */
  async measure(): Promise<void> {
    const { db, nowMs } = this.#deps;
    const { waiting, oldest } = await measureQueuedKeys(db, { max: MEASURED_MAX });
    this.#waiting.set(waiting);
    this.#oldest.set(oldest === null ? 0 : Math.max(0, nowMs() - oldest) / 1000);
  }

  /** Ends the time slices in progress after their current keys. */
  close(): void {
    this.#isClosing = true;
  }

  async #turn(workspaceId: string): Promise<boolean> {
    const endMs = performance.now() + TURN.msMax;
    for (let batches = 0; batches < TURN.batchesMax && performance.now() < endMs; batches++) {
      if (this.#isClosing || !(await this.#next(workspaceId, BATCH))) return false;
    }
    return true;
  }

  /** Tries to create the keys that have been due the longest. Returns false if no key is due. Throws if Postgres is unavailable. */
  async #next(workspaceId: string, max: number): Promise<boolean> {
    const deps = this.#deps;
    let taken: readonly QueuedKeyRow[] = [];
    try {
      await inTransaction(deps, async (tx) => {
        await limitWaiting(tx, BOUNDS);
        taken = await lockDueKeys(tx, { workspaceId, nowMs: deps.nowMs(), max });
        if (taken.length > 0) await createQueuedKeys(tx, deps, taken);
      });
    } catch (error) {
      const [first, ...others] = taken;
      if (first === undefined || isUnavailableForAll(error)) throw error;
      if (others.length === 0) await this.#failed(first, error);
      else await this.#oneByOne(workspaceId, taken.length);
      return true;
    }
    this.#created.inc(taken.length);
    return taken.length > 0;
  }

  /**
   * Tries to create each key separately after a batch has failed. A key that fails again is postponed, so every key of the batch gets an
   * attempt.
   */
  async #oneByOne(workspaceId: string, count: number): Promise<void> {
    for (let tried = 0; tried < count; tried++) {
      if (this.#isClosing || !(await this.#next(workspaceId, 1))) return;
    }
  }

  async #failed(row: QueuedKeyRow, error: unknown): Promise<void> {
    const { db, log, nowMs } = this.#deps;
    const reason = error instanceof PublicError ? error.kind : "unexpected_error";
    this.#failures.inc({ reason });
    const failures = row.failures + 1;
    if (failures <= RETRIES_MAX && !FINAL.has(reason)) {
      if (reason === "unexpected_error")
        log.warn({ err: error, ...nameOf(row), failures }, "a queued key failed; retrying");
      await postponeQueuedKey(db, { ...refOf(row), dueAt: nowMs() + backoffMs(failures, RETRY) });
      return;
    }
    if (!(await giveUpQueuedKey(db, this.#deps, { row, reason }))) return;
    this.#givenUp.inc({ reason });
    const cause =
      error instanceof PublicError ? { detail: error.detail.slice(0, DETAIL_CHARACTERS_MAX) } : { err: error };
    log.error({ ...cause, reason, ...nameOf(row), tries: failures }, "migration error: a queued key was not created");
  }
}

/** Returns the members by which the caller can identify the key in the log. They contain neither its secret nor its hash. */
const nameOf = (row: QueuedKeyRow) => ({
  workspaceId: row.workspace_id,
  apiId: row.api_id,
  migrationId: row.migration_id,
  requestId: requestIdOf(row.requested_by),
  position: row.position,
  keyId: row.key_id,
});
