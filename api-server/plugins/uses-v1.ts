import { DAY_MS, utcDate } from "../../core/utc-date.ts";
import type { Deps } from "../deps.ts";
import { noteRarely } from "../note-rarely.ts";
import type { Call } from "../procedure.ts";
import { insertAudit } from "../store/audit.ts";
import { inTransaction } from "../store/transaction.ts";
import { upsertV1Use } from "../store/v1-uses.ts";

/*
 * Notes which root keys still call v1, so that a team knows when it may switch it off: at most one row of the audit log for each root
 * key and UTC date, whichever api-server is called. A call of a root key that was noted today costs a look into a set.
 */

export interface V1Uses {
  /** Returns at once; what cannot be stored now is noted by a later call. */
  note(call: Call<unknown>): void;
  /** Waits for what is being stored. */
  settle(): Promise<void>;
}

/** So many are stored at once: at midnight all root keys are new. The others are noted by their next calls. */
const AT_ONCE = 2;
/** After a failure nothing is tried for this long, because the next calls would fail for the same reason. */
const PAUSE_MS = 30_000;

export function createV1Uses(deps: Deps): V1Uses {
  let day = -1;
  let pausedUntilMs = 0;
  /** Those noted today: root keys that exist, so their number is bounded. */
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
          noteRarely(deps, { reason: error.message, message: "a use of v1 could not be noted in the audit log" });
        })
        .finally(() => running.delete(stored));
      running.add(stored);
    },
    settle: async () => void (await Promise.all(running)),
  };
}
