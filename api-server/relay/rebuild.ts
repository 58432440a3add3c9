import type { Client } from "pg";
import type { Logger } from "pino";
import type { CreditStore } from "../../edge/credits/contract.ts";
import type { RecordWriter, StoreState } from "../../edge/projection/contract.ts";
import type { Queryable } from "../../postgres/queryable.ts";
import { listEveryApiId } from "../db/apis.ts";
import { renewCreditRevs } from "../db/key-credits.ts";
import {
  countRecentChanges,
  insertNamespaceNameEntries,
  insertRecentChanges,
  nextProjectionVersion,
  raiseProjectionVersion,
} from "../db/outbox.ts";
import { renewPolicyVersions } from "../db/policies.ts";
import {
  countRecordRefs,
  LISTED_KINDS,
  type ListedKind,
  listRecordRefs,
  type RefPage,
  type Within,
} from "../db/records.ts";
import { findSetting, putSetting } from "../db/settings.ts";
import { listEveryWorkspaceId } from "../db/workspaces.ts";
import { inSnapshot, projectRecords } from "./round.ts";

/*
 * Redis can lose changes, because it was flushed, restarted from an old snapshot, or replaced. Postgres can lose changes because it was
 * restored. In both cases, everything is projected again under a new projection id, which makes every reader drop its data.
 *
 *   whyRebuild ──reason──► beginProjection ──► rebuild (several pages at a time) ──► complete
 *                                                 │ process dies
 *                                                 └──► resumed by the next leader, from the last saved page
 *
 * Meanwhile the relay loop still relays changes and sends heartbeats: a rebuild only writes records that are not announced.
 * Both may write one record at the same time. The higher version takes precedence, and it includes everything that the lower one
 * includes, or an outbox entry for the rest is still pending.
 */

/** The current projection, as stored in Postgres. */
interface Remembered {
  readonly projectionId: string;
  readonly runId: string;
  readonly timeline?: string | undefined;
}

/** Progress of an incomplete projection: all records before this cursor of this kind are written, as are all records of earlier kinds. */
interface Progress {
  readonly projectionId: string;
  readonly kind: ListedKind;
  readonly after: string;
  readonly records: number;
}

const SETTING = "projection";
/** Name of the setting that stores the id of the last projection that contains all namespace names. */
const NAMES_SETTING = "projection-names";
const PROGRESS_SETTING = "projection-progress";
const PAGE = 1000;
/** Number of pages that are read and written at the same time, each on a separate connection. */
const PAGES_AT_ONCE = 3;
const SAVE_EVERY_MS = 2000;
/** Time for which recent changes are kept, ms. It equals the default time for which a sidecar uses its data without a heartbeat. */
export const RECENT_KEPT_MS = 15 * 60 * 1000;
/**
 * If Redis was rolled back by at most this duration, Postgres certainly still has all changes that Redis has lost, even if clocks differ.
 */
const PREVIOUS_AGE_MS_MAX = 10 * 60 * 1000;
/** Maximum number of recent changes that are put back into the outbox. Relaying so many takes up to two seconds. */
export const RECENT_MAX = 50_000;

/**
 * Returns the reason why everything must be projected again; `undefined` if Redis holds the expected projection. `lastHead` is 0 at first.
 * `timeline` is the timeline of Postgres. It changes when a standby is promoted and after a point-in-time recovery; either can lose commits
 * that are already projected. A comparison of versions may miss such a loss, because Postgres writes sequence values to its log up to 32 in
 * advance.
 */
export async function whyRebuild(
  db: Queryable,
  state: StoreState,
  { lastHead, lastVersion, timeline }: { lastHead: number; lastVersion: number; timeline: string | undefined },
): Promise<string | undefined> {
  if (state.projectionId === undefined) return EMPTY;
  const remembered = await findRemembered(db);
  // All versions in Redis are lower than `lastVersion` unless Postgres was restored, because every version is drawn from Postgres before it
  // is written to Redis.
  if (state.version >= lastVersion) return RESTORED;
  if (remembered?.projectionId !== state.projectionId) return "the store holds another projection";
  if (remembered.timeline !== timeline && timeline !== undefined) return RESTORED;
  if (remembered.runId !== state.runId) return RESTARTED;
  if (state.head < lastHead) return WENT_BACK;
  return undefined;
}

/** Reason for a full projection on the very first start, and after Redis was flushed. */
const EMPTY = "the store holds no projection";
/** Reason for a full projection if Redis has, or may have, data that Postgres does not have. */
export const RESTORED = "Postgres was restored from an older state";

const RESTARTED = "the store was restarted";
const WENT_BACK = "the store went back in time";

/** Returns the projection that was begun last. The state in Redis shows whether it is complete. */
const findRemembered = (db: Queryable): Promise<Remembered | undefined> => findSetting<Remembered>(db, SETTING);

/**
 * Begins a projection in an empty or inconsistent Redis. From then on, readers drop their data and treat missing records as "not usable".
 * Safe to repeat.
 */
export async function beginProjection(
  { db, writer }: { db: Queryable; writer: RecordWriter },
  {
    projectionId,
    reason,
    state,
    timeline,
    log,
  }: { projectionId: string; reason: string; state: StoreState; timeline: string | undefined; log: Logger },
): Promise<void> {
  log[reason === EMPTY ? "info" : "warn"]({ reason, projectionId }, "projecting everything again");
  if (reason === RESTORED) {
    await renewCreditRevs(db);
    await renewPolicyVersions(db);
  }
  // Stores the projection's id in Postgres first and in Redis afterwards. In the reverse order, after a crash in between, the next relay
  // would begin yet another projection.
  await putSetting(db, SETTING, { projectionId, runId: state.runId, timeline } satisfies Remembered);
  // This must come after the statements above: once it has run, the versions no longer show that Postgres was restored, so after an earlier
  // crash, the next relay would not begin a projection.
  if (reason === RESTORED) await raiseProjectionVersion(db, state.version);
  // If Redis lost its last announcements, a reader that missed them would continue to use older data during the new projection. The changes
  // are therefore announced again before a heartbeat makes that data look fresh. If a bulk change left too many entries to announce,
  // readers must drop their data instead.
  const recent = await countRecentChanges(db, { keptMs: RECENT_KEPT_MS, max: RECENT_MAX + 1 });
  const forget = recent > RECENT_MAX;
  if (!forget) await insertRecentChanges(db, { keptMs: RECENT_KEPT_MS });
  // All changes after the last heartbeat in Redis are among the recent changes, so all other records in Redis are still valid.
  const isOurs = reason === RESTARTED || reason === WENT_BACK;
  const usePrevious = isOurs && !forget && Math.abs((await writer.nowMs()) - state.asOfMs) < PREVIOUS_AGE_MS_MAX;
  await writer.begin(projectionId, await listEveryWorkspaceId(db), { forget, usePrevious });
}

/**
 * Ensures that a complete projection contains the names of namespaces, which an older relay may not have written. The names are added to
 * the outbox once, and relayed as if the namespaces had changed.
 */
export async function ensureNames(db: Queryable, projectionId: string): Promise<void> {
  if ((await findSetting<string>(db, NAMES_SETTING)) === projectionId) return;
  await insertNamespaceNameEntries(db);
  await putSetting(db, NAMES_SETTING, projectionId);
}

export interface RebuildOptions {
  readonly projectionId: string;
  readonly writer: RecordWriter;
  readonly credits: CreditStore;
  readonly log: Logger;
  /** Opens a connection. The rebuild closes it. */
  readonly connect: () => Promise<Client>;
  readonly signal: AbortSignal;
  /** Called with the number of records written so far. */
  readonly onProgress: (records: number) => void;
  /**
   * Called when the projections of single workspaces were restarted separately. The callback must arrange that `rebuildWorkspace` is called
   * for each of them.
   */
  readonly onBegun: (workspaceIds: readonly string[]) => void;
}

/**
 * Writes every record under a projection that has begun, and completes the projection. Continues where an earlier call for the same
 * projection ended. Throws `ProjectionChanged` if Redis now contains another projection, and an error if fewer records were written than
 * Postgres has. If the signal is aborted, returns early and leaves the projection incomplete.
 */
export async function rebuild(options: RebuildOptions): Promise<void> {
  const { projectionId, writer, credits, log, signal } = options;
  const startedAt = performance.now();
  await withConnections(options, PAGES_AT_ONCE, async (db, workers) => {
    const saved = await findSetting<Progress | null>(db, PROGRESS_SETTING);
    const progress = saved?.projectionId === projectionId ? saved : undefined;
    // Closes all credit counters, so that each is loaded from Postgres before credits are spent: counters from an old snapshot of Redis
    // would grant spent credits again.
    if (progress === undefined) await credits.closeAll();
    else log.info({ projectionId, records: progress.records }, "resuming a projection");
    const deps = LISTED_KINDS.slice(progress === undefined ? 0 : LISTED_KINDS.indexOf(progress.kind));
    const pages = new Pages(db, { parts: deps.map((kind) => ({ kind })), after: progress?.after ?? "" });
    pages.records = progress?.records ?? 0;
    let savedAt = performance.now();
    await writePages(options, { pages, workers }, async () => {
      if (performance.now() - savedAt < SAVE_EVERY_MS) return;
      savedAt = performance.now();
      const reached = pages.reached();
      const now: Progress = { projectionId, kind: reached.kind, after: reached.after, records: pages.records };
      await pages.inTurn(() => putSetting(db, PROGRESS_SETTING, now));
    });
    if (signal.aborted) return;
    // The list includes new workspaces, because a workspace that is never completed would prevent the full projection from completing.
    const all = await listEveryWorkspaceId(db);
    await writer.begin(projectionId, all);
    await writer.complete(projectionId, all, await nextProjectionVersion(db));
    await putSetting(db, PROGRESS_SETTING, null);
    await putSetting(db, NAMES_SETTING, projectionId);
    const tookMs = Math.round(performance.now() - startedAt);
    log.info({ projectionId, records: pages.records, tookMs }, "projected everything");
  });
}

/**
 * Like `rebuild`, but for a single workspace whose projection was restarted on its own: writes all of the workspace's records and completes
 * its projection.
 */
export async function rebuildWorkspace(options: RebuildOptions, workspaceId: string): Promise<void> {
  const { writer, log, signal } = options;
  await withConnections(options, 1, async (db, workers) => {
    const others = LISTED_KINDS.filter((kind) => kind !== "key").map((kind) => ({ kind, within: { workspaceId } }));
    const apis = await listEveryApiId(db, workspaceId);
    const keys = apis.map((apiId) => ({ kind: "key", within: { apiId } }) as const);
    const pages = new Pages(db, { parts: [...others, ...keys], after: "" });
    await writePages(options, { pages, workers }, async () => undefined);
    if (signal.aborted) return;
    await writer.completeWorkspace(workspaceId);
    log.warn(
      { workspaceId, records: pages.records },
      "projected one workspace again, because another client changed its data in Redis",
    );
  });
}

/**
 * Calls `work` with one connection for lists and settings, and several connections for pages. All of them are closed when the signal is
 * aborted.
 */
async function withConnections(
  { connect, signal }: RebuildOptions,
  workersCount: number,
  work: (db: Client, workers: readonly Client[]) => Promise<void>,
): Promise<void> {
  const connections: Client[] = [];
  const end = () => Promise.all(connections.map((connection) => connection.end().catch(() => undefined)));
  // Ends the connections, because a query that waits for a lock would delay the relay's shutdown.
  signal.addEventListener("abort", end, { once: true });
  try {
    for (let i = 0; i <= workersCount; i++) connections.push(await connect());
    const [db, ...workers] = connections as [Client, ...Client[]];
    await work(db, workers);
  } finally {
    signal.removeEventListener("abort", end);
    await end();
  }
}

async function writePages(
  { projectionId, writer, signal, onProgress, onBegun }: RebuildOptions,
  { pages, workers }: { pages: Pages; workers: readonly Client[] },
  afterEach: () => Promise<void>,
): Promise<void> {
  const work = async (db: Client): Promise<void> => {
    for (let page = await pages.next(); page !== undefined && !signal.aborted; page = await pages.next()) {
      if (page.refs.length > 0) onBegun(await projectRecords({ db, writer, projectionId }, page.refs));
      pages.done(page);
      onProgress(pages.records);
      await afterEach();
    }
  };
  await Promise.all(workers.map(work));
}

interface Part {
  readonly kind: ListedKind;
  readonly within?: Within;
}

interface Page extends RefPage, Part {
  readonly after: string;
  isDone: boolean;
}

/** The pages of a projection, one after another. Tracks the position up to which all records are written. */
class Pages {
  /** Number of records written so far. */
  records = 0;
  readonly #db: Client;
  readonly #parts: readonly Part[];
  /** Pages in progress, starting with the oldest. */
  readonly #underWay: Page[] = [];
  /** Index of the kind to list next, and the cursor within that kind. */
  #part = 0;
  #after: string;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(db: Client, { parts: deps, after }: { parts: readonly Part[]; after: string }) {
    this.#db = db;
    this.#parts = deps;
    this.#after = after;
  }

  /** Returns the next page; `undefined` after the last one. */
  next(): Promise<Page | undefined> {
    return this.inTurn(() => this.#list());
  }

  done(page: Page): void {
    page.isDone = true;
    this.records += page.refs.length;
    while (this.#underWay[0]?.isDone === true) this.#underWay.shift();
  }

  /** Returns the position before which all records are written. */
  reached(): { kind: ListedKind; after: string } {
    const [oldest] = this.#underWay;
    if (oldest !== undefined) return oldest;
    const part = this.#parts[this.#part] ?? this.#parts.at(-1);
    return { kind: part?.kind ?? "policy", after: this.#after };
  }

  /** Runs `work` on the connection after all earlier calls have ended, so that no two calls use it at once. */
  inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(work);
    this.#turn = result.catch(() => undefined);
    return result;
  }

  async #list(): Promise<Page | undefined> {
    const part = this.#parts[this.#part];
    if (part === undefined) return undefined;
    const range = { ...part, after: this.#after };
    const listed = await inSnapshot(this.#db, async () => {
      const found = await listRecordRefs(this.#db, { ...range, max: PAGE });
      const count = await countRecordRefs(this.#db, { ...range, upTo: found.cursor });
      // Throws if a page omitted a record. Otherwise, the projection would be marked complete, and every gate would reject an omitted key.
      if (count !== found.refs.length)
        throw new Error(`of ${count} ${part.kind} records, ${found.refs.length} were listed`);
      return found;
    });
    if (listed.cursor === undefined) this.#part += 1;
    this.#after = listed.cursor ?? "";
    const page: Page = { ...listed, ...range, isDone: false };
    this.#underWay.push(page);
    return page;
  }
}
