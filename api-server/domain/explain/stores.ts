import { isDeepStrictEqual } from "node:util";
import type { ReadRecord } from "../../../edge/projection/contract.ts";
import { createPostgresSource } from "../../db/records.ts";
import type { InstallationDeps } from "../deps.ts";

/** State of a key's record in one store. `missing`: the projection does not contain the record; `gone`: the record is deleted. */
export interface RecordSeen {
  readonly state: ReadRecord["state"] | "away";
  readonly version?: number;
  readonly problem?: string;
}

/**
 * Reads the record of a key both from Postgres and from the store that the gates read. `isSame` is true if the records are equal. `meta`,
 * the owner and the environment are not compared, because pods do not receive them.
 */
export async function seeRecord(
  { db, installation }: Pick<InstallationDeps, "db" | "installation">,
  { workspaceId, hash }: { readonly workspaceId: string; readonly hash: string },
): Promise<{ readonly postgres: RecordSeen; readonly gates: RecordSeen; readonly isSame: boolean }> {
  const refs = [{ workspaceId, kind: "key" as const, id: hash }];
  const [ours, theirs] = await Promise.all([createPostgresSource(db).read(refs), installation.edge.source.read(refs)]);
  const one = (batch: typeof ours): ReadRecord | { state: "away"; problem: string } => {
    const [record] = batch.usable ? batch.records : (batch.partial ?? []);
    return record ?? { state: "away", problem: batch.usable ? "nothing was read" : batch.reason };
  };
  const [postgres, gates] = [one(ours), one(theirs)];
  return {
    postgres: toSeen(postgres),
    gates: toSeen(gates),
    isSame: isDeepStrictEqual(dataOf(postgres), dataOf(gates)),
  };
}

const NOT_SENT = new Set(["meta", "ownerId", "environment"]);

function dataOf(record: { readonly state: string }): unknown {
  if (record.state !== "found") return record.state === "missing" ? "gone" : record.state;
  const { data } = record as { data?: unknown };
  if (typeof data !== "object" || data === null) return data;
  return Object.fromEntries(Object.entries(data).filter(([name]) => !NOT_SENT.has(name)));
}

function toSeen(record: ReadRecord | { readonly state: "away"; readonly problem: string }): RecordSeen {
  const { state } = record;
  if (record.state === "found") return { state, version: record.version };
  return "problem" in record ? { state, problem: record.problem } : { state };
}
