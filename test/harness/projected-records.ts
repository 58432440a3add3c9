import type { Queryable } from "../../api-server/store/queryable.ts";
import { readSomeRecords } from "../../api-server/store/records.ts";
import { jsonOf } from "../../edge/projection/contract.ts";
import type { RecordRef } from "../../edge/records.ts";

/** The records of the refs as the relay projects them, in their order; undefined for what is not there. */
export async function readRecords(db: Queryable, refs: readonly RecordRef[]): Promise<unknown[]> {
  const { writes } = await readSomeRecords(db, refs, { bytesMax: Number.MAX_SAFE_INTEGER });
  const place = ({ kind, workspaceId, id }: RecordRef): string => `${kind} ${workspaceId} ${id}`;
  const found = new Map(writes.map((write) => [place(write.ref), jsonOf(write)]));
  return refs.map((ref) => {
    const json = found.get(place(ref));
    return json === undefined ? undefined : JSON.parse(json);
  });
}
