import { DAY_MS, utcDate } from "../../../core/utc-date.ts";
import { logThrottled } from "../../../edge/log-throttle.ts";
import { insertAudit } from "../../db/audit.ts";
import { inTransaction } from "../../db/transaction.ts";
import { upsertV1Use } from "../../db/v1-usage.ts";
import type { Deps } from "../../deps.ts";
import type { Call } from "../../procedure.ts";

/*
 * Records which root keys still call v1, so that a team can decide when to disable v1. Writes at most one audit log row per root key and
 * UTC date, across all api-servers. If a root key was already recorded today, a call costs one set lookup.
 */

export interface V1Usage {
  /** Records the use in the background; if it cannot be stored now, a later call records it. */
  note(call: Call<unknown>): void;
  /** Waits for pending writes. */
  settle(): Promise<void>;
}

/**
 * Maximum number of concurrent writes. At midnight (UTC), every root key must be recorded again. The root keys beyond this maximum are
 * recorded by later calls.
 */
const AT_ONCE = 2;
/** Pause after a failure, because the next writes would probably fail for the same reason. */
const PAUSE_MS = 30_000;

export function createV1Usage(deps: Deps): V1Usage {
  let day = -1;
  let pausedUntilMs = 0;
  /** Root keys that were recorded today. The set stays bounded, because only existing root keys are added. */
  const noted = new Set<string>();
  const running = new Set<Promise<void>>();

  async function store(call: Call<unknown>, nowMs: number): Promise<void> {
    const { workspaceId, actor } = call.caller;
    const { id: rootKeyId, name } = actor;
    await inTransaction(deps, async (tx) => {
      if (!(await upsertV1Use(tx, { workspaceId, rootKeyId, date: utcDate(nowMs) }))) return;
      const description = `Root key ${rootKeyId} called v1 of the API`;
      await insertAudit(tx, call, [
        { event: "api.v1_used", description, targets: [{ type: "rootKey", id: rootKeyId, name }] },
      ]);
    });
  }

  return {
    note(call) {
      const nowMs = deps.nowMs();
      const today = Math.floor(nowMs / DAY_MS);
      if (today !== day) {
        day = today;
        noted.clear();
      }
      const { id: rootKeyId } = call.caller.actor;
      if (noted.has(rootKeyId) || running.size >= AT_ONCE || nowMs < pausedUntilMs) return;
      noted.add(rootKeyId);
      const stored = store(call, nowMs)
        .catch((error: Error) => {
          pausedUntilMs = deps.nowMs() + PAUSE_MS;
          noted.delete(rootKeyId);
          logThrottled(deps, { reason: error.message, message: "a use of v1 could not be recorded in the audit log" });
        })
        .finally(() => running.delete(stored));
      running.add(stored);
    },
    settle: async () => void (await Promise.all(running)),
  };
}
