import { ProjectionChanged, type RecordWriter } from "../../edge/projection/contract.ts";
import type { RecordKind, RecordRef } from "../../edge/records.ts";
import type { Queryable } from "../../postgres/queryable.ts";
import {
  listKeyRefs,
  listOutbox,
  listOutboxOf,
  listWaitingWorkspaces,
  moveToRecent,
  nextProjectionVersion,
  type ReadEntry,
} from "../db/outbox.ts";
import { readSomeRecords } from "../db/records.ts";

/** Maximum outbox entries per batch. */
export const BATCH_MAX = 1000;
/** Minimum share of entries from large transactions in a full batch, so that large transactions make progress too. */
const BULK_SHARE = BATCH_MAX / 4;
/** Maximum workspaces per batch. */
const WORKSPACES_MAX = 200;
/** Maximum bytes of records in memory at the same time. A single larger record is still read. */
const READ_BYTES_MAX = 8 * 1024 * 1024;

/** Order in which kinds are written. Referenced records come first, so that a reader never finds a reference to a missing record. */
const RANK: Readonly<Record<RecordKind, number>> = {
  workspace: 0,
  api: 1,
  namespace: 1,
  namespaceName: 1,
  role: 1,
  identity: 1,
  overridePatterns: 2,
  override: 2,
  rootKey: 2,
  key: 3,
  policy: 3,
};

export interface Projecting {
  /** Connection to Postgres; not a pool, because all reads must use one snapshot. */
  readonly db: Queryable;
  readonly writer: RecordWriter;
  readonly projectionId: string;
}

/** Thrown if a table was truncated. Its former rows have no outbox entries, so everything must be projected again. */
export class TableEmptied extends ProjectionChanged {
  override name = "TableEmptied";
  /** Sequence numbers of the truncation's outbox entries. These are deleted as soon as the new projection has begun. */
  readonly seqs: readonly number[];

  constructor(entries: readonly ReadEntry[]) {
    super(`${entries.map(({ id }) => id).join(", ")} was emptied by truncate`);
    this.seqs = entries.map(({ seq }) => seq);
  }
}

/**
 * Selects the entries to relay next if more are pending than fit into a batch. Workspaces take turns, and so do small and large
 * transactions, so a bulk change delays neither other workspaces nor small changes in its own workspace.
 */
export class FairScheduler {
  readonly #after = { small: "", bulk: "" };

  /** Returns the entries of the next batch, oldest first within a workspace. */
  async next(db: Queryable): Promise<ReadEntry[]> {
    const small = await this.#take(db, "small", BATCH_MAX - BULK_SHARE);
    const bulk = await this.#take(db, "bulk", BATCH_MAX - small.length);
    return [...small, ...bulk];
  }

  async #take(db: Queryable, lane: "small" | "bulk", entriesMax: number): Promise<ReadEntry[]> {
    const bulk = lane === "bulk";
    const after = this.#after[lane];
    const workspaceIds = await listWaitingWorkspaces(db, { bulk, after, max: WORKSPACES_MAX });
    // If a page is not full, it contains the last workspaces, so the next batch starts again with the first workspace.
    this.#after[lane] = workspaceIds.length < WORKSPACES_MAX ? "" : (workspaceIds.at(-1) ?? "");
    if (workspaceIds.length === 0) return after === "" ? [] : this.#take(db, lane, entriesMax);
    const max = Math.max(1, Math.floor(entriesMax / workspaceIds.length));
    return listOutboxOf(db, { bulk, workspaceIds, max });
  }
}

export interface RelayedBatch {
  /** Number of relayed entries. */
  readonly relayed: number;
  /** Whether entries remain that were visible at the beginning of the batch. */
  readonly isFull: boolean;
  /** Workspaces whose projections were restarted separately, because their part of Redis rejected the writes. */
  readonly begun: readonly string[];
}

/**
 * Relays outbox entries to Redis and removes them. The order ensures correctness: the entries are read, then the version is drawn, then the
 * snapshot is taken. The snapshot therefore contains everything committed before the entries were read, and of two overlapping relays, the
 * one with the larger version includes everything that the other includes. Throws `TableEmptied` if an entry requests a full projection.
 */
export async function relayBatch(
  { db, writer, projectionId }: Projecting,
  turns: FairScheduler,
): Promise<RelayedBatch> {
  let entries = await listOutbox(db, { max: BATCH_MAX });
  const isFull = entries.length === BATCH_MAX;
  if (isFull) entries = await turns.next(db);
  const emptied = entries.filter(({ kind }) => kind === "everything");
  if (emptied.length > 0) throw new TableEmptied(emptied);
  if (entries.length === 0) return { relayed: 0, isFull, begun: [] };
  const version = await nextProjectionVersion(db);
  const begun = await inSnapshot(db, async () => {
    const refs = await refsOf(db, entries);
    return writeRecords({ db, writer, projectionId }, { refs, version, announce: true });
  });
  await moveToRecent(
    db,
    entries.map(({ seq }) => seq),
  );
  return { relayed: entries.length, isFull, begun };
}

/**
 * Writes the current state of the records of a new projection under a new version. The writes are not announced, because readers clear
 * their caches when a new projection begins. Returns the workspaces whose projections were restarted, like `RelayedBatch.begun`.
 */
export async function projectRecords(
  { db, writer, projectionId }: Projecting,
  refs: readonly RecordRef[],
): Promise<readonly string[]> {
  const version = await nextProjectionVersion(db);
  return inSnapshot(db, () => writeRecords({ db, writer, projectionId }, { refs, version, announce: false }));
}

/** Returns the distinct records to which the entries refer. A key is identified by the hash that it has in this snapshot. */
async function refsOf(db: Queryable, entries: readonly ReadEntry[]): Promise<RecordRef[]> {
  const keyIds = new Set<string>();
  const refs = new Map<string, RecordRef>();
  const add = (ref: RecordRef) => refs.set(`${ref.workspaceId} ${ref.kind} ${ref.id}`, ref);
  for (const { kind, workspaceId, id } of entries) {
    if (kind === "keyId") keyIds.add(id);
    else if (kind !== "everything") add({ workspaceId, kind, id });
  }
  if (keyIds.size > 0) for (const ref of await listKeyRefs(db, [...keyIds])) add(ref);
  return [...refs.values()];
}

/**
 * Writes large records in several batches. All are read in one snapshot, so the batches can have the same version. Referenced records are
 * in the same batch or an earlier one.
 */
async function writeRecords(
  { db, writer, projectionId }: Projecting,
  { refs, version, announce }: { refs: readonly RecordRef[]; version: number; announce: boolean },
): Promise<string[]> {
  const begun = new Set<string>();
  let left: readonly RecordRef[] = refs.toSorted((a, b) => RANK[a.kind] - RANK[b.kind]);
  while (left.length > 0) {
    const { writes, unread } = await readSomeRecords(db, left, { bytesMax: READ_BYTES_MAX });
    const anew = await writer.write({ projectionId, version, writes, announce });
    for (const workspaceId of anew.begun) begun.add(workspaceId);
    left = unread;
  }
  return [...begun];
}

export async function inSnapshot<T>(db: Queryable, work: () => Promise<T>): Promise<T> {
  await db.query("begin isolation level repeatable read read only");
  try {
    return await work();
  } finally {
    await db.query("commit");
  }
}
