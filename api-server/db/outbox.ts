import type { RecordKind, RecordRef } from "../../edge/records.ts";
import type { Queryable } from "../../postgres/queryable.ts";

/**
 * An outbox entry identifies a record that must be projected again. A key is identified by `keyId`, because its hash may change before the
 * record is read. `everything` means that a table was truncated: Postgres runs no row triggers for that, so the rows have no entries of
 * their own.
 */
export interface ReadEntry {
  readonly seq: number;
  readonly workspaceId: string;
  readonly kind: RecordKind | "keyId" | "everything";
  readonly id: string;
}

interface OutboxRow {
  readonly seq: number;
  readonly workspace_id: string;
  readonly kind: ReadEntry["kind"];
  readonly id: string;
}

const toReadEntry = ({ seq, workspace_id, kind, id }: OutboxRow): ReadEntry => ({
  seq,
  workspaceId: workspace_id,
  kind,
  id,
});

/** Channel that notifies the relay of new outbox entries. */
export const OUTBOX_CHANNEL = "postern_outbox";

/** Returns the oldest visible outbox entries. */
export async function listOutbox(db: Queryable, { max }: { max: number }): Promise<ReadEntry[]> {
  const text = "select o.seq, o.workspace_id, o.kind, o.id from outbox o order by o.seq limit $1";
  const { rows } = await db.query<OutboxRow>({ name: "list-outbox", text, values: [max] });
  return rows.map(toReadEntry);
}

/**
 * Queue of the outbox: `bulk: false` selects the entries of small transactions and the first entries of large ones; `bulk: true` selects
 * the rest. With separate queues, a transaction that changes a million rows does not delay other changes.
 */
export interface Lane {
  readonly bulk: boolean;
}

/**
 * Returns workspaces after `after` with entries in the queue, sorted by id. Takes one index lookup per workspace, however many entries the
 * workspace has.
 */
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

/** Returns the oldest visible entries of each of the given workspaces. */
export async function listOutboxOf(
  db: Queryable,
  { bulk, workspaceIds, max }: Lane & { workspaceIds: readonly string[]; max: number },
): Promise<ReadEntry[]> {
  const text = `select entry.seq, turn.workspace_id, entry.kind, entry.id
                  from unnest($2::text[]) as turn (workspace_id)
                 cross join lateral (select o.seq, o.kind, o.id
                                       from outbox o
                                      where o.bulk = $1 and o.workspace_id = turn.workspace_id
                                      order by o.seq
                                      limit $3) as entry`;
  const { rows } = await db.query<OutboxRow>({ name: "list-outbox-of", text, values: [bulk, workspaceIds, max] });
  return rows.map(toReadEntry);
}

/** Returns, by workspace, the oldest visible entry of each of the given workspaces in the queue. */
export async function listOldestEntries(
  db: Queryable,
  { bulk, workspaceIds }: Lane & { workspaceIds: readonly string[] },
): Promise<Map<string, number>> {
  const entries = await listOutboxOf(db, { bulk, workspaceIds, max: 1 });
  return new Map(entries.map(({ workspaceId, seq }) => [workspaceId, seq]));
}

/** Returns the sequence number of the newest visible entry; 0 if there is none. */
export async function newestEntry(db: Queryable): Promise<number> {
  const text = "select coalesce(max(o.seq), 0) as newest from outbox o";
  const { rows } = await db.query<{ newest: number }>({ name: "newest-entry", text });
  return rows[0]?.newest ?? 0;
}

/** Returns the records of the given keys, with their current hashes and workspaces. */
export async function listKeyRefs(db: Queryable, keyIds: readonly string[]): Promise<RecordRef[]> {
  const text = "select k.workspace_id, k.hash from keys k where k.id = any($1::text[])";
  const { rows } = await db.query<{ workspace_id: string; hash: string }>({
    name: "list-key-refs",
    text,
    values: [keyIds],
  });
  return rows.map(({ workspace_id, hash }) => ({ workspaceId: workspace_id, kind: "key", id: hash }));
}

/** Moves exactly these relayed entries to the recent changes. Newer entries of the same records stay. */
export async function moveToRecent(db: Queryable, seqs: readonly number[]): Promise<void> {
  const text = `with carried as (
                  delete from outbox o where o.seq = any($1) returning o.workspace_id, o.kind, o.id
                )
                insert into recent_changes (workspace_id, kind, id)
                select distinct c.workspace_id, c.kind, c.id from carried c`;
  await db.query({ name: "move-to-recent", text, values: [seqs] });
}

/**
 * Puts the entries that were relayed in the last `keptMs` back into the outbox, so that they are relayed and announced again. Entries that
 * are already pending are not added again; otherwise the outbox would grow with each restart of a Redis that crashes in a loop.
 */
export async function insertRecentChanges(db: Queryable, { keptMs }: { keptMs: number }): Promise<void> {
  // Only the first entries of each workspace go into the urgent queue. The others go into the bulk queue, as those of a large transaction
  // do.
  const text = `insert into outbox (workspace_id, kind, id, bulk)
                select r.workspace_id, r.kind, r.id, row_number() over (partition by r.workspace_id) > 200
                  from (select workspace_id, kind, id
                          from recent_changes
                         where relayed_at > (extract(epoch from clock_timestamp()) * 1000)::bigint - $1::bigint
                        except
                        select workspace_id, kind, id from outbox) r`;
  await db.query({ name: "insert-recent-changes", text, values: [keptMs] });
}

/** Adds outbox entries for the names of all namespaces, as if each had been changed. */
export async function insertNamespaceNameEntries(db: Queryable): Promise<void> {
  const text = `insert into outbox (workspace_id, kind, id, bulk)
                select n.workspace_id, 'namespaceName', n.name, row_number() over (partition by n.workspace_id) > 200
                  from ratelimit_namespaces n
                 where n.deleted_at is null`;
  await db.query({ name: "insert-namespace-name-entries", text });
}

/** Returns the number of entries relayed in the last `keptMs`, up to `max`. */
export async function countRecentChanges(
  db: Queryable,
  { keptMs, max }: { keptMs: number; max: number },
): Promise<number> {
  const text = `select count(*) as changes
                  from (select from recent_changes r
                         where r.relayed_at > (extract(epoch from clock_timestamp()) * 1000)::bigint - $1::bigint
                         limit $2) as recent`;
  const { rows } = await db.query<{ changes: number }>({ name: "count-recent-changes", text, values: [keptMs, max] });
  return rows[0]?.changes ?? 0;
}

/** Deletes the oldest entries that were relayed longer ago than `keptMs`, at most `rowsMax`. */
export async function deleteOldRecentChanges(
  db: Queryable,
  { keptMs, rowsMax }: { keptMs: number; rowsMax: number },
): Promise<void> {
  const text = `delete from recent_changes
                 where ctid = any (array(
                   select r.ctid
                     from recent_changes r
                    where r.relayed_at <= (extract(epoch from clock_timestamp()) * 1000)::bigint - $1::bigint
                    order by r.relayed_at
                    limit $2))`;
  await db.query({ name: "delete-old-recent-changes", text, values: [keptMs, rowsMax] });
}

/** Deletes exactly these entries. Newer entries of the same records stay. */
export async function deleteOutbox(db: Queryable, seqs: readonly number[]): Promise<void> {
  await db.query({ name: "delete-outbox", text: "delete from outbox where seq = any($1)", values: [seqs] });
}

/** Returns the number of pending entries, up to `max`. */
export async function countOutbox(db: Queryable, { max }: { max: number }): Promise<number> {
  const text = "select count(*) as depth from (select from outbox limit $1) as waiting";
  const { rows } = await db.query<{ depth: number }>({ name: "count-outbox", text, values: [max] });
  return rows[0]?.depth ?? 0;
}

/** Returns the next record version, which is larger than all earlier versions. */
export async function nextProjectionVersion(db: Queryable): Promise<number> {
  const { rows } = await db.query<{ version: number }>({
    name: "next-projection-version",
    text: "select nextval('projection_version') as version",
  });
  return rows[0]?.version ?? 0;
}

/**
 * Makes the next record version larger than `version`. This is required after a restore of Postgres, because the restored sequence is
 * behind the versions in Redis.
 */
export async function raiseProjectionVersion(db: Queryable, version: number): Promise<void> {
  const text = "select setval('projection_version', greatest($1::bigint, (select last_value from projection_version)))";
  await db.query({ name: "raise-projection-version", text, values: [version] });
}
