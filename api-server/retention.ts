import type { Pool } from "pg";
import { Counter, Gauge, type Registry } from "prom-client";
import { defineMetrics, exported } from "../core/metric.ts";
import { DAY_MS } from "../core/utc-date.ts";
import { findUsageToRemove } from "./analytics/postgres/remove-usage.ts";
import { countOutbox } from "./store/outbox.ts";
import {
  type RemoveBatch,
  removeAudit,
  removeDeletedApis,
  removeDeletedIdentities,
  removeDeletedKeys,
  removeDeletedNamespaces,
  removeDeletedOverrides,
  removeDeletedPolicies,
  removeRootKeyUses,
} from "./store/retention.ts";
import { removeOldSignIns } from "./store/sessions.ts";
import { listEveryWorkspaceId } from "./store/workspaces.ts";
import type { RunTurns } from "./workspace-turns.ts";

/*
 * Removes data after its retention time: hourly, one batch of each kind in each workspace's turn, repeated until
 * nothing is left. Several api-servers may do so at once; each skips the rows that another one has locked.
 */

/** After their time was over: a session that has ended is told from one that never was for this long. */
const SIGN_INS_KEPT_MS = DAY_MS;
const HOUR_MS = 3_600_000;
const ROWS_MAX = 500;
/** Rows of usage leave no marks, and there are many. */
const USAGE_ROWS_MAX = 5_000;
/** Removed rows leave marks. While the relay has this many to relay, those of changes come first. */
const OUTBOX_MAX = 2_000;

export interface RetentionDays {
  /** Of the audit log; 0 keeps it for ever. */
  readonly audit: number;
  /** Of deleted keys, APIs, identities, namespaces, overrides and policies; 0 keeps them for ever. */
  readonly deleted: number;
}

export const DEFAULT_RETENTION_DAYS: RetentionDays = { audit: 90, deleted: 30 };

interface Kept {
  readonly what: string;
  readonly of: keyof RetentionDays;
  readonly remove: RemoveBatch;
}

/** Rows that refer to others first. */
const KEPT: readonly Kept[] = [
  { what: "audit", of: "audit", remove: removeAudit },
  { what: "overrides", of: "deleted", remove: removeDeletedOverrides },
  { what: "policies", of: "deleted", remove: removeDeletedPolicies },
  { what: "keys", of: "deleted", remove: removeDeletedKeys },
  { what: "namespaces", of: "deleted", remove: removeDeletedNamespaces },
  { what: "identities", of: "deleted", remove: removeDeletedIdentities },
  { what: "apis", of: "deleted", remove: removeDeletedApis },
  { what: "root_key_uses", of: "deleted", remove: removeRootKeyUses },
];

export const RETENTION_METRICS = defineMetrics({
  removed: {
    name: "postern_retention_removed_total",
    type: "counter",
    help: "Rows removed after their retention time",
    unit: "rows",
    labels: { what: "what they were, such as `audit`, `keys`, `sign-ins` or a table of usage" },
    bad: "It has no bad value.",
  },
  finished: {
    name: "postern_retention_finished_timestamp_seconds",
    type: "gauge",
    help: "When a run last found nothing more to remove; 0 before the first time",
    unit: "Unix seconds",
    bad: 'The newest of all api-servers more than some hours ago: removal does not keep up or fails; see `postern_background_failures_total{loop="retention"}` and `postern_outbox_depth`.',
  },
});

export class Retention {
  readonly #options: { db: Pool; nowMs: () => number; days: RetentionDays; runTurns: RunTurns };
  readonly #removed: Counter<"what">;
  readonly #finished: Gauge;
  #dueAtMs = 0;

  constructor(options: { db: Pool; nowMs: () => number; days: RetentionDays; runTurns: RunTurns; metrics: Registry }) {
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

  /** One round of turns, if a run is due. Returns whether there is more to remove soon. */
  async round(): Promise<boolean> {
    const { db, nowMs, runTurns } = this.#options;
    if (nowMs() < this.#dueAtMs) return false;
    if ((await countOutbox(db, { max: OUTBOX_MAX })) >= OUTBOX_MAX) return false;
    let failed = false;
    const isMore = await runTurns(await listEveryWorkspaceId(db), async (workspaceId) => {
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

  /** Of the installation, and few: people sign in some times a day. */
  async #removeSignIns(): Promise<boolean> {
    const { db, nowMs } = this.#options;
    const beforeMs = nowMs() - SIGN_INS_KEPT_MS;
    const count = await removeOldSignIns(db, { beforeMs, rowsMax: ROWS_MAX });
    this.#removed.inc({ what: "sign-ins" }, count);
    return count === ROWS_MAX;
  }

  /** A failure of one kind does not affect the others. */
  async #turn(workspaceId: string): Promise<boolean> {
    const { db, nowMs, days } = this.#options;
    let isMore = false;
    let failure: unknown;
    for (const { what, of, remove } of KEPT) {
      if (days[of] === 0) continue;
      try {
        const beforeMs = nowMs() - days[of] * DAY_MS;
        const count = await remove(db, { workspaceId, beforeMs, rowsMax: ROWS_MAX });
        this.#removed.inc({ what }, count);
        isMore ||= count === ROWS_MAX;
      } catch (error) {
        failure ??= error;
      }
    }
    for (const { table, beforeMs, remove } of await findUsageToRemove(db, workspaceId, nowMs())) {
      try {
        const count = await remove(db, { workspaceId, beforeMs, rowsMax: USAGE_ROWS_MAX });
        this.#removed.inc({ what: table }, count);
        isMore ||= count === USAGE_ROWS_MAX;
      } catch (error) {
        failure ??= error;
      }
    }
    if (failure !== undefined) throw failure;
    return isMore;
  }
}
