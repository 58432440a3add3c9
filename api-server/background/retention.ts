import type { Pool } from "pg";
import { Counter, Gauge, type Registry } from "prom-client";
import { findUsageToRemove } from "../../analytics/postgres/remove-usage.ts";
import { defineMetrics, exported } from "../../core/metric.ts";
import { DAY_MS } from "../../core/utc-date.ts";
import type { RemoveBatch } from "../../postgres/queryable.ts";
import { countOutbox } from "../db/outbox.ts";
import {
  removeAudit,
  removeDeletedApis,
  removeDeletedIdentities,
  removeDeletedKeys,
  removeDeletedNamespaces,
  removeDeletedOverrides,
  removeDeletedPolicies,
  removeRootKeyUsage,
} from "../db/retention.ts";
import { removeOldSignIns } from "../db/sessions.ts";
import { listEveryWorkspaceId } from "../db/workspaces.ts";
import type { RunFairly } from "./workspace-turns.ts";

/*
 * Removes data after its retention time. A run starts every hour and continues until all expired data is removed; each time slice of a
 * workspace removes one batch of each kind. Several api-servers can run this concurrently, because each skips rows that another one has
 * locked.
 */

/** Retention of ended sign-ins and sessions. As long as the row exists, an ended session can be distinguished from an unknown one. */
const SIGN_INS_KEPT_MS = DAY_MS;
const HOUR_MS = 3_600_000;
const ROWS_MAX = 500;
/** Maximum number of usage rows per batch. It is large, because there are many such rows and removing them creates no outbox entries. */
const USAGE_ROWS_MAX = 5_000;
/**
 * Number of pending outbox entries at which removal pauses. Removing rows adds outbox entries, and these must not delay the entries of
 * other changes.
 */
const OUTBOX_MAX = 2_000;

export interface RetentionDays {
  /** Retention of the audit log, in days; 0 keeps it indefinitely. */
  readonly audit: number;
  /** Retention of deleted keys, APIs, identities, namespaces, overrides and policies, in days; 0 keeps them indefinitely. */
  readonly deleted: number;
}

export const DEFAULT_RETENTION_DAYS: RetentionDays = { audit: 90, deleted: 30 };

interface Kept {
  readonly kind: string;
  readonly of: keyof RetentionDays;
  readonly remove: RemoveBatch;
}

/** Kinds of rows, in the order of their removal: rows that refer to others are removed first. */
const KEPT: readonly Kept[] = [
  { kind: "audit", of: "audit", remove: removeAudit },
  { kind: "overrides", of: "deleted", remove: removeDeletedOverrides },
  { kind: "policies", of: "deleted", remove: removeDeletedPolicies },
  { kind: "keys", of: "deleted", remove: removeDeletedKeys },
  { kind: "namespaces", of: "deleted", remove: removeDeletedNamespaces },
  { kind: "identities", of: "deleted", remove: removeDeletedIdentities },
  { kind: "apis", of: "deleted", remove: removeDeletedApis },
  { kind: "root_key_usage", of: "deleted", remove: removeRootKeyUsage },
];

export const RETENTION_METRICS = defineMetrics({
  removed: {
    name: "postern_retention_removed_total",
    type: "counter",
    help: "Rows removed after their retention period",
    unit: "rows",
    labels: { kind: "what they were, such as `audit`, `keys`, `sign-ins` or a table of usage" },
    bad: "",
  },
  finished: {
    name: "postern_retention_finished_timestamp_seconds",
    type: "gauge",
    help: "Time of the last run that found nothing more to remove; 0 before the first",
    unit: "Unix seconds",
    bad: 'Hours ago on all api-servers: see `postern_background_failures_total{loop="retention"}` and `postern_outbox_depth`.',
  },
});

export class Retention {
  readonly #options: { db: Pool; nowMs: () => number; days: RetentionDays; runFairly: RunFairly };
  readonly #removed: Counter<"kind">;
  readonly #finished: Gauge;
  #dueAtMs = 0;

  constructor(options: {
    db: Pool;
    nowMs: () => number;
    days: RetentionDays;
    runFairly: RunFairly;
    metrics: Registry;
  }) {
    this.#options = options;
    const registers = [options.metrics];
    this.#removed = new Counter({
      ...exported(RETENTION_METRICS.removed),
      registers,
    });
    this.#finished = new Gauge({
      ...exported(RETENTION_METRICS.finished),
      registers,
    });
  }

  /** If a run is due, runs one time slice per workspace. Returns whether more rows remain to be removed soon. */
  async round(): Promise<boolean> {
    const { db, nowMs, runFairly } = this.#options;
    if (nowMs() < this.#dueAtMs) return false;
    if ((await countOutbox(db, { max: OUTBOX_MAX })) >= OUTBOX_MAX) return false;
    let failed = false;
    const isMore = await runFairly(await listEveryWorkspaceId(db), async (workspaceId) => {
      try {
        return await this.#turn(workspaceId);
      } catch (error) {
        failed = true;
        throw error;
      }
    });
    if (isMore || (await this.#removeSignIns())) return true;
    this.#dueAtMs = nowMs() + HOUR_MS;
    if (!failed) this.#finished.set(nowMs() / 1000);
    return false;
  }

  /** Removes one batch of the installation's ended sign-ins. There are few of them, because people sign in only a few times a day. */
  async #removeSignIns(): Promise<boolean> {
    const { db, nowMs } = this.#options;
    const beforeMs = nowMs() - SIGN_INS_KEPT_MS;
    const count = await removeOldSignIns(db, { beforeMs, rowsMax: ROWS_MAX });
    this.#removed.inc({ kind: "sign-ins" }, count);
    return count === ROWS_MAX;
  }

  /** Removes one batch of each kind. A failure of one kind does not affect the others. */
  async #turn(workspaceId: string): Promise<boolean> {
    const { db, nowMs, days } = this.#options;
    let isMore = false;
    let failure: unknown;
    for (const { kind, of, remove } of KEPT) {
      if (days[of] === 0) continue;
      try {
        const beforeMs = nowMs() - days[of] * DAY_MS;
        const count = await remove(db, { workspaceId, beforeMs, rowsMax: ROWS_MAX });
        this.#removed.inc({ kind }, count);
        isMore ||= count === ROWS_MAX;
      } catch (error) {
        failure ??= error;
      }
    }
    for (const { table, beforeMs, remove } of await findUsageToRemove(db, workspaceId, nowMs())) {
      try {
        const count = await remove(db, { workspaceId, beforeMs, rowsMax: USAGE_ROWS_MAX });
        this.#removed.inc({ kind: table }, count);
        isMore ||= count === USAGE_ROWS_MAX;
      } catch (error) {
        failure ??= error;
      }
    }
    if (failure !== undefined) throw failure;
    return isMore;
  }
}
