import type { RecordKind, RecordRef } from "../../edge/projection/contract.ts";
import type { Queryable } from "./queryable.ts";

/** A mark in the outbox: a record that is to be projected anew. */
export interface OutboxRow {
  readonly seq: number;
  readonly ref: RecordRef;
}

/** The channel on which triggers say that there is something in the outbox. */
export const OUTBOX_CHANNEL = "postern_outbox";

/** The oldest marks that are visible now. */
export async function listOutbox(db: Queryable, { max }: { max: number }): Promise<OutboxRow[]> {
  const text = "select seq, workspace_id, kind, id from outbox order by seq limit $1";
  const { rows } = await db.query<{ seq: number; workspace_id: string; kind: RecordKind; id: string }>({
    name: "list-outbox",
    text,
    values: [max],
  });
  return rows.map(({ seq, workspace_id, kind, id }) => ({ seq, ref: { workspaceId: workspace_id, kind, id } }));
}

/** Deletes just these marks: others of the same record may have come since. */
export async function deleteOutbox(db: Queryable, seqs: readonly number[]): Promise<void> {
  await db.query({ name: "delete-outbox", text: "delete from outbox where seq = any($1)", values: [seqs] });
}

/** How many marks wait. Exact up to `max`, which is given for more. */
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

/** Sees to it that the next version is larger than `version`: after a restore, the sequence is behind the shared store. */
export async function raiseProjectionVersion(db: Queryable, version: number): Promise<void> {
  const text = "select setval('projection_version', greatest($1::bigint, (select last_value from projection_version)))";
  await db.query({ name: "raise-projection-version", text, values: [version] });
}
