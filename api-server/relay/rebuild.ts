import type { Logger } from "pino";
import type { CreditStore } from "../../edge/credits/contract.ts";
import type { StoreState } from "../../edge/projection/contract.ts";
import { renewCreditRevs } from "../store/key-credits.ts";
import { raiseProjectionVersion } from "../store/outbox.ts";
import type { Queryable } from "../store/queryable.ts";
import { LISTED_KINDS, listRecordRefs } from "../store/records.ts";
import { findSetting, putSetting } from "../store/settings.ts";
import { listEveryWorkspaceId } from "../store/workspaces.ts";
import { carryRound, type Projecting, projectRecords } from "./round.ts";

/*
 * The store can go back in time: it was flushed, restarted from an old snapshot, or replaced; or Postgres was restored. Then
 * everything is projected anew, under a new projection id, which makes every reader forget what it has.
 */

/** What Postgres remembers of the projection in force. */
interface Remembered {
  readonly projectionId: string;
  readonly runId: string;
  readonly timeline?: string | undefined;
}

const SETTING = "projection";
const PAGE = 1000;

/**
 * Why everything must be projected anew, undefined when the store holds what it should. `lastHead` is 0 at first, `timeline`
 * that of Postgres: a standby that was promoted, or a recovery to an earlier moment, has lost commits that may have been
 * projected, and its sequences need not show it, because they run up to 32 numbers ahead of what was drawn.
 */
export async function whyRebuild(
  db: Queryable,
  state: StoreState,
  { lastHead, lastVersion, timeline }: { lastHead: number; lastVersion: number; timeline: string | undefined },
): Promise<string | undefined> {
  if (state.projectionId === undefined) return EMPTY;
  const remembered = await findSetting<Remembered>(db, SETTING);
  // What the store holds was drawn before `lastVersion` was, so that an equal one is of another history already.
  if (state.version >= lastVersion) return RESTORED;
  if (remembered?.projectionId !== state.projectionId) return "the store holds another projection";
  if (remembered.timeline !== timeline && timeline !== undefined) return RESTORED;
  if (!state.complete) return "the projection was not completed";
  if (remembered.runId !== state.runId) return "the store was restarted";
  if (state.head < lastHead) return "the store went back in time";
  return undefined;
}

/** As at the very first start, and after a flush. */
const EMPTY = "the store holds no projection";
/** The store has seen, or may have seen, what Postgres does not know of. */
export const RESTORED = "Postgres was restored from an older state";

/** Projects everything. Marks that come meanwhile are carried in between, so that changes do not wait for the end. */
export async function rebuild(
  { db, writer, projectionId }: Projecting,
  options: {
    reason: string;
    state: StoreState;
    timeline: string | undefined;
    credits: CreditStore;
    log: Logger;
    isClosing: () => boolean;
  },
): Promise<void> {
  const { reason, state, timeline, credits, log, isClosing } = options;
  const startedAt = performance.now();
  log[reason === EMPTY ? "info" : "warn"]({ reason, projectionId }, "projecting everything anew");
  if (reason === RESTORED) {
    await raiseProjectionVersion(db, state.version);
    await renewCreditRevs(db);
  }
  const workspaceIds = await listEveryWorkspaceId(db);
  await writer.begin(projectionId, workspaceIds);
  // Counters of an old snapshot would give again what was spent since: each is loaded anew before it is spent from.
  for (const workspaceId of workspaceIds) await credits.closeAll(workspaceId);
  let records = 0;
  for (const kind of LISTED_KINDS) {
    for (let after: string | undefined = ""; after !== undefined && !isClosing(); ) {
      const page = await listRecordRefs(db, { kind, after, max: PAGE });
      if (page.refs.length > 0) await projectRecords({ db, writer, projectionId }, page.refs);
      records += page.refs.length;
      after = page.cursor;
      await carryRound({ db, writer, projectionId });
    }
  }
  if (isClosing()) return;
  // Those that came to be meanwhile as well: one that is never completed would keep the whole from ever being so.
  const all = await listEveryWorkspaceId(db);
  await writer.begin(projectionId, all);
  await writer.complete(projectionId, all);
  await putSetting(db, SETTING, { projectionId, runId: state.runId, timeline } satisfies Remembered);
  log.info({ projectionId, records, tookMs: Math.round(performance.now() - startedAt) }, "projected everything");
}
