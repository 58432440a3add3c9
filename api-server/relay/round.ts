import { ProjectionChanged, type RecordWriter } from "../../edge/projection/contract.ts";
import type { RecordKind, RecordRef } from "../../edge/records.ts";
import {
  listKeyRefs,
  listOutbox,
  listOutboxOf,
  listWaitingWorkspaces,
  type Mark,
  moveToRecent,
  nextProjectionVersion,
} from "../store/outbox.ts";
import type { Queryable } from "../store/queryable.ts";
import { readSomeRecords } from "../store/records.ts";

/** So many marks are carried at a time. */
export const ROUND_MAX = 1000;
/** Of a full round, what large transactions have at least, so that they end as well. */
const BULK_SHARE = ROUND_MAX / 4;
/** So many workspaces have their turn in one round. */
const WORKSPACES_MAX = 200;
/** So much of what they name is in memory at once, whatever the size of a record; a single one may go beyond. */
const READ_BYTES_MAX = 8 * 1024 * 1024;

/** What records refer to is written before them, so that no reader finds a reference that leads nowhere. */
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
  /** One connection, not a pool: what is read must be one snapshot. */
  readonly db: Queryable;
  readonly writer: RecordWriter;
  readonly projectionId: string;
}

/** A table was emptied by `truncate`: its rows have no marks of their own, so that everything is to be projected anew. */
export class TableEmptied extends ProjectionChanged {
  override name = "TableEmptied";
  /** The marks that say so, to be deleted when the new projection has begun. */
  readonly seqs: readonly number[];

  constructor(marks: readonly Mark[]) {
    super(`${marks.map(({ id }) => id).join(", ")} was emptied by truncate`);
    this.seqs = marks.map(({ seq }) => seq);
  }
}

/**
 * Whose marks are carried next while there are more than a round takes: workspaces take turns, and so do small transactions and
 * large ones, so that one bulk change delays no other workspace's changes, and no small ones of its own.
 */
export class Turns {
  readonly #after = { small: "", bulk: "" };

  /** The marks of the next round, oldest first within a workspace. */
  async next(db: Queryable): Promise<Mark[]> {
    const small = await this.#take(db, "small", ROUND_MAX - BULK_SHARE);
    const bulk = await this.#take(db, "bulk", ROUND_MAX - small.length);
    return [...small, ...bulk];
  }

  async #take(db: Queryable, lane: "small" | "bulk", marksMax: number): Promise<Mark[]> {
    const bulk = lane === "bulk";
    const after = this.#after[lane];
    const workspaceIds = await listWaitingWorkspaces(db, { bulk, after, max: WORKSPACES_MAX });
    // The last ones before the end of the alphabet; the next round begins at its start.
    this.#after[lane] = workspaceIds.length < WORKSPACES_MAX ? "" : (workspaceIds.at(-1) ?? "");
    if (workspaceIds.length === 0) return after === "" ? [] : this.#take(db, lane, marksMax);
    const max = Math.max(1, Math.floor(marksMax / workspaceIds.length));
    return listOutboxOf(db, { bulk, workspaceIds, max });
  }
}

export interface Round {
  /** Marks that were carried. */
  readonly carried: number;
  /** Whether marks were left that had been visible at the beginning of the round. */
  readonly isFull: boolean;
  /** Workspaces that were begun anew by themselves, because their part of the store did not take what was written. */
  readonly begun: readonly string[];
}

/**
 * Carries marks of the outbox to the store and takes them out of it. The order is what makes it right: whatever was committed before the
 * marks were read is in the snapshot, which is taken after the version was drawn; so of two relays that overlap, the one with the
 * larger version has seen all that the other has. Throws `TableEmptied` when a mark asks for everything anew.
 */
export async function carryRound({ db, writer, projectionId }: Projecting, turns: Turns): Promise<Round> {
  let marks = await listOutbox(db, { max: ROUND_MAX });
  const isFull = marks.length === ROUND_MAX;
  if (isFull) marks = await turns.next(db);
  const emptied = marks.filter(({ kind }) => kind === "everything");
  if (emptied.length > 0) throw new TableEmptied(emptied);
  if (marks.length === 0) return { carried: 0, isFull, begun: [] };
  const version = await nextProjectionVersion(db);
  const begun = await inSnapshot(db, async () => {
    const refs = await refsOf(db, marks);
    return writeRecords({ db, writer, projectionId }, { refs, version, announce: true });
  });
  await moveToRecent(
    db,
    marks.map(({ seq }) => seq),
  );
  return { carried: marks.length, isFull, begun };
}

/**
 * Writes what these records are now, under a new version, without announcing them: for a projection that is made anew, whose
 * readers have forgotten everything. Returns workspaces as `Round.begun`.
 */
export async function projectRecords(
  { db, writer, projectionId }: Projecting,
  refs: readonly RecordRef[],
): Promise<readonly string[]> {
  const version = await nextProjectionVersion(db);
  return inSnapshot(db, () => writeRecords({ db, writer, projectionId }, { refs, version, announce: false }));
}

/** Each record that the marks name, once. A key is named by the hash that it has in this snapshot. */
async function refsOf(db: Queryable, marks: readonly Mark[]): Promise<RecordRef[]> {
  const keyIds = new Set<string>();
  const refs = new Map<string, RecordRef>();
  const add = (ref: RecordRef) => refs.set(`${ref.workspaceId} ${ref.kind} ${ref.id}`, ref);
  for (const { kind, workspaceId, id } of marks) {
    if (kind === "keyId") keyIds.add(id);
    else if (kind !== "everything") add({ workspaceId, kind, id });
  }
  if (keyIds.size > 0) for (const ref of await listKeyRefs(db, [...keyIds])) add(ref);
  return [...refs.values()];
}

/**
 * Large records are written in several parts, all read in the one snapshot, so that what the version promises is true of each;
 * and what others refer to is in an earlier part, or the same.
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
