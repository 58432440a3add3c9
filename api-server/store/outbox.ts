import type { RecordKind, RecordRef } from "../../edge/records.ts";
import type { Queryable } from "./queryable.ts";

/**
 * A mark in the outbox: a record that must be projected again. `keyId` names a key by its id, whatever its hash is when the record
 * is read; `everything` means that a table was truncated, without marks for its rows.
 */
export interface Mark {
  readonly seq: number;
  readonly workspaceId: string;
  readonly kind: RecordKind | "keyId" | "everything";
  readonly id: string;
}

interface MarkRow {
  readonly seq: number;
  readonly workspace_id: string;
  readonly kind: Mark["kind"];
  readonly id: string;
}

const toMark = ({ seq, workspace_id, kind, id }: MarkRow): Mark => ({ seq, workspaceId: workspace_id, kind, id });

/** The channel on which the relay is notified of new marks. */
export const OUTBOX_CHANNEL = "postern_outbox";

/** The oldest marks that are visible now. */
export async function listOutbox(db: Queryable, { max }: { max: number }): Promise<Mark[]> {
  const text = "select o.seq, o.workspace_id, o.kind, o.id from outbox o order by o.seq limit $1";
  const { rows } = await db.query<MarkRow>({ name: "list-outbox", text, values: [max] });
  return rows.map(toMark);
}

/**
 * With `bulk: false`, marks of small transactions and the first ones of large transactions; otherwise the rest of large ones. So a
 * transaction that changes a million rows delays no other change.
 */
export interface Lane {
  readonly bulk: boolean;
}

/** Workspaces after `after` with marks in the lane, sorted by id. One index lookup for each, however many marks it has. */
export async function listWaitingWorkspaces(
  db: Queryable,
  { bulk, after, max }: Lane & { after: string; max: number },
): Promise<string[]> {
  const text = `with recursive waiting (workspace_id, place) as (
                  (select o.workspace_id, 1
                     from outbox o
                    where o.bulk = $1 and o.workspace_id > $2
                    order by o.workspace_id
                    limit 1)
                  union all
                  select (select o.workspace_id
                            from outbox o
                           where o.bulk = $1 and o.workspace_id > w.workspace_id
                           order by o.workspace_id
                           limit 1), w.place + 1
                    from waiting w
                   where w.workspace_id is not null and w.place < $3
                )
                select w.workspace_id from waiting w where w.workspace_id is not null`;
  const { rows } = await db.query<{ workspace_id: string }>({
    name: "list-waiting-workspaces",
    text,
    values: [bulk, after, max],
  });
  return rows.map(({ workspace_id }) => workspace_id);
}

/** The oldest visible marks of each of these workspaces. */
export async function listOutboxOf(
  db: Queryable,
  { bulk, workspaceIds, max }: Lane & { workspaceIds: readonly string[]; max: number },
): Promise<Mark[]> {
  const text = `select mark.seq, turn.workspace_id, mark.kind, mark.id
                  from unnest($2::text[]) as turn (workspace_id)
                 cross join lateral (select o.seq, o.kind, o.id
                                       from outbox o
                                      where o.bulk = $1 and o.workspace_id = turn.workspace_id
                                      order by o.seq
                                      limit $3) as mark`;
  const { rows } = await db.query<MarkRow>({ name: "list-outbox-of", text, values: [bulk, workspaceIds, max] });
  return rows.map(toMark);
}

/** The oldest visible mark of each of these workspaces in the lane, by workspace. */
export async function listOldestMarks(
  db: Queryable,
  { bulk, workspaceIds }: Lane & { workspaceIds: readonly string[] },
): Promise<Map<string, number>> {
  const marks = await listOutboxOf(db, { bulk, workspaceIds, max: 1 });
  return new Map(marks.map(({ workspaceId, seq }) => [workspaceId, seq]));
}

/** The number of the newest visible mark; 0 when there is none. */
export async function newestMark(db: Queryable): Promise<number> {
  const text = "select coalesce(max(o.seq), 0) as newest from outbox o";
  const { rows } = await db.query<{ newest: number }>({ name: "newest-mark", text });
  return rows[0]?.newest ?? 0;
}

/** The records of these keys, by their current hashes and workspaces. */
export async function listKeyRefs(db: Queryable, keyIds: readonly string[]): Promise<RecordRef[]> {
  const text = "select k.workspace_id, k.hash from keys k where k.id = any($1::text[])";
  const { rows } = await db.query<{ workspace_id: string; hash: string }>({
    name: "list-key-refs",
    text,
    values: [keyIds],
  });
  return rows.map(({ workspace_id, hash }) => ({ workspaceId: workspace_id, kind: "key", id: hash }));
}

/** Moves exactly these marks, which were relayed, to the recent ones. Newer marks of the same records stay. */
export async function moveToRecent(db: Queryable, seqs: readonly number[]): Promise<void> {
  const text = `with carried as (
                  delete from outbox o where o.seq = any($1) returning o.workspace_id, o.kind, o.id
                )
                insert into outbox_recent (workspace_id, kind, id)
                select distinct c.workspace_id, c.kind, c.id from carried c`;
  await db.query({ name: "move-to-recent", text, values: [seqs] });
}

/** Puts the marks that were relayed in the last `keptMs` back into the outbox, so that they are relayed and announced again. */
export async function insertRecentMarks(db: Queryable, { keptMs }: { keptMs: number }): Promise<void> {
  // Marks beyond the first ones of each workspace are bulk, like the rest of a large transaction.
  const text = `insert into outbox (workspace_id, kind, id, bulk)
                select r.workspace_id, r.kind, r.id, row_number() over (partition by r.workspace_id) > 200
                  from (select distinct workspace_id, kind, id
                          from outbox_recent
                         where carried_at > (extract(epoch from clock_timestamp()) * 1000)::bigint - $1::bigint) r`;
  await db.query({ name: "insert-recent-marks", text, values: [keptMs] });
}

/** Marks the names of all namespaces, as if each had been changed. */
export async function insertNamespaceNameMarks(db: Queryable): Promise<void> {
  const text = `insert into outbox (workspace_id, kind, id, bulk)
                select n.workspace_id, 'namespaceName', n.name, row_number() over (partition by n.workspace_id) > 200
                  from ratelimit_namespaces n
                 where n.deleted_at is null`;
  await db.query({ name: "insert-namespace-name-marks", text });
}

/** How many marks were relayed in the last `keptMs`; `max` when there are more. */
export async function countRecentMarks(
  db: Queryable,
  { keptMs, max }: { keptMs: number; max: number },
): Promise<number> {
  const text = `select count(*) as marks
                  from (select from outbox_recent r
                         where r.carried_at > (extract(epoch from clock_timestamp()) * 1000)::bigint - $1::bigint
                         limit $2) as recent`;
  const { rows } = await db.query<{ marks: number }>({ name: "count-recent-marks", text, values: [keptMs, max] });
  return rows[0]?.marks ?? 0;
}

/** Deletes the oldest marks that were relayed longer ago than `keptMs`, at most `rowsMax`. */
export async function deleteOldRecentMarks(
  db: Queryable,
  { keptMs, rowsMax }: { keptMs: number; rowsMax: number },
): Promise<void> {
  const text = `delete from outbox_recent
                 where ctid = any (array(
                   select r.ctid
                     from outbox_recent r
                    where r.carried_at <= (extract(epoch from clock_timestamp()) * 1000)::bigint - $1::bigint
                    order by r.carried_at
                    limit $2))`;
  await db.query({ name: "delete-old-recent-marks", text, values: [keptMs, rowsMax] });
}

/** Deletes exactly these marks. Newer marks of the same records stay. */
export async function deleteOutbox(db: Queryable, seqs: readonly number[]): Promise<void> {
  await db.query({ name: "delete-outbox", text: "delete from outbox where seq = any($1)", values: [seqs] });
}

/** How many marks wait; `max` when there are more. */
export async function countOutbox(db: Queryable, { max }: { max: number }): Promise<number> {
  const text = "select count(*) as depth from (select from outbox limit $1) as waiting";
  const { rows } = await db.query<{ depth: number }>({ name: "count-outbox", text, values: [max] });
  return rows[0]?.depth ?? 0;
}

/** The next version for records; larger than all before. */
export async function nextProjectionVersion(db: Queryable): Promise<number> {
  const { rows } = await db.query<{ version: number }>({
    name: "next-projection-version",
    text: "select nextval('projection_version') as version",
  });
  return rows[0]?.version ?? 0;
}

/** Makes the next version larger than `version`: after a restore, the sequence is behind the shared store. */
export async function raiseProjectionVersion(db: Queryable, version: number): Promise<void> {
  const text = "select setval('projection_version', greatest($1::bigint, (select last_value from projection_version)))";
  await db.query({ name: "raise-projection-version", text, values: [version] });
}
