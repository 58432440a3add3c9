import type { RecordKind, RecordRef, RecordWriter } from "../../edge/projection/contract.ts";
import { deleteOutbox, listOutbox, nextProjectionVersion } from "../store/outbox.ts";
import type { Queryable } from "../store/queryable.ts";
import { readSomeRecords } from "../store/records.ts";

/** So many marks are carried at a time. */
export const ROUND_MAX = 500;
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

/**
 * Carries the oldest marks of the outbox to the store and deletes them. The order is what makes it right: whatever was
 * committed before the marks were read is in the snapshot, which is taken after the version was drawn; so of two relays
 * that overlap, the one with the larger version has seen all that the other has. Gives how many marks there were.
 */
export async function carryRound({ db, writer, projectionId }: Projecting): Promise<number> {
  const marks = await listOutbox(db, { max: ROUND_MAX });
  if (marks.length === 0) return 0;
  await projectRecords({ db, writer, projectionId }, distinct(marks.map(({ ref }) => ref)));
  await deleteOutbox(
    db,
    marks.map(({ seq }) => seq),
  );
  return marks.length;
}

/**
 * Writes what these records are now, under a new version. Large ones are written in several parts, all read in the one
 * snapshot, so that what the version promises is true of each; and what others refer to is in an earlier part, or the same.
 */
export async function projectRecords(
  { db, writer, projectionId }: Projecting,
  refs: readonly RecordRef[],
): Promise<void> {
  const version = await nextProjectionVersion(db);
  await inSnapshot(db, async () => {
    let left: readonly RecordRef[] = refs.toSorted((a, b) => RANK[a.kind] - RANK[b.kind]);
    while (left.length > 0) {
      const { writes, unread } = await readSomeRecords(db, left, { bytesMax: READ_BYTES_MAX });
      await writer.write({ projectionId, version, writes });
      left = unread;
    }
  });
}

async function inSnapshot(db: Queryable, project: () => Promise<void>): Promise<void> {
  await db.query("begin isolation level repeatable read read only");
  try {
    await project();
  } finally {
    await db.query("commit");
  }
}

function distinct(refs: readonly RecordRef[]): RecordRef[] {
  return [...new Map(refs.map((ref) => [`${ref.workspaceId} ${ref.kind} ${ref.id}`, ref])).values()];
}
