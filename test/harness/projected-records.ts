import { readSomeRecords } from "../../api-server/db/records.ts";
import { jsonOf } from "../../edge/projection/contract.ts";
import type { RecordRef } from "../../edge/records.ts";
import type { Queryable } from "../../postgres/queryable.ts";

/** Returns the records of the references as projected by the relay, in order; `undefined` for a missing one. */
export async function readRecords(db: Queryable, refs: readonly RecordRef[]): Promise<unknown[]> {
  const { writes } = await readSomeRecords(db, refs, { bytesMax: Number.MAX_SAFE_INTEGER });
  const place = ({ kind, workspaceId, id }: RecordRef): string => `${kind} ${workspaceId} ${id}`;
  const found = new Map(writes.map((write) => [place(write.ref), jsonOf(write)]));
  return refs.map((ref) => {
    const json = found.get(place(ref));
    return json === undefined ? undefined : JSON.parse(json);
  });
}
