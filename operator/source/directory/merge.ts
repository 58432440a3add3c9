import { isDeepStrictEqual } from "node:util";
import { PENDING_STATUS } from "../../../core/manifests/conditions.ts";
import type { Kind } from "../../../core/manifests/index.ts";
import type { Desired, DocumentProblem, ReadDocument } from "./documents.ts";

/** An object of the directory as it is stored: what the Kubernetes API server would store of it. */
export interface StoredObject {
  readonly kind: Kind;
  readonly namespace: string;
  readonly name: string;
  /** The file that it comes from; of two documents of one identity, the one in this file is used. */
  readonly file: string;
  readonly uid: string;
  readonly generation: number;
  readonly creationTimestamp: string;
  readonly deletionTimestamp?: string;
  readonly finalizers: readonly string[];
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: unknown;
  readonly status: unknown;
}

export type Objects = ReadonlyMap<string, StoredObject>;

export interface Merged {
  readonly objects: Objects;
  /** Identities that have no document any more and are not being deleted yet. */
  readonly missing: readonly string[];
  readonly problems: readonly DocumentProblem[];
}

export interface MergeInput {
  readonly objects: Objects;
  /** The documents of each readable file, sorted by file name. */
  readonly files: ReadonlyMap<string, readonly ReadDocument[]>;
  readonly nowMs: number;
  readonly makeUid: () => string;
}

/**
 * Returns the objects after the files were read again. Two documents of one identity are one object, and the file that it already
 * comes from wins; reconcilers/claims.ts decides between two objects that claim one name in the store. Deletes nothing: an object
 * without a document is only listed as missing, because an editor that saves a file may remove it for a moment. Of a broken
 * document the last good version stays in force; while a file has a document whose identity is unreadable, all objects of that
 * file stay.
 */
export function mergeDocuments({ objects, files, nowMs, makeUid }: MergeInput): Merged {
  const problems: DocumentProblem[] = [];
  const chosen = new Map<string, { desired: Desired; file: string; index: number }>();
  const keptIds = new Set<string>();
  const keptFiles = new Set<string>();

  for (const [file, documents] of files) {
    for (const [index, { id, desired, problems: found }] of documents.entries()) {
      problems.push(...found);
      if (id === undefined) keptFiles.add(file);
      else if (desired === undefined) keptIds.add(id);
      else {
        const other = chosen.get(id);
        const isInForce = objects.get(id)?.file === file && other?.file !== file;
        if (other === undefined || isInForce) chosen.set(id, { desired, file, index });
        const loser = other === undefined ? undefined : isInForce ? other : { file, index };
        if (loser !== undefined) problems.push(duplicate(id, loser, isInForce ? file : (other?.file ?? file)));
      }
    }
  }

  const next = new Map<string, StoredObject>();
  const missing: string[] = [];
  for (const [id, object] of objects) {
    const found = chosen.get(id);
    next.set(id, found === undefined ? object : updated(object, found, nowMs));
    const isKept = keptIds.has(id) || keptFiles.has(object.file);
    if (found === undefined && !isKept && object.deletionTimestamp === undefined) missing.push(id);
  }
  for (const [id, { desired, file }] of chosen) {
    if (!next.has(id)) next.set(id, created(desired, file, nowMs, makeUid()));
  }
  return { objects: next, missing, problems };
}

/** Does not change an object that is being deleted: its document can create a new one only after the deletion. */
function updated(
  object: StoredObject,
  { desired, file }: { desired: Desired; file: string },
  nowMs: number,
): StoredObject {
  if (object.deletionTimestamp !== undefined) return object;
  const { spec, annotations } = desired;
  const isSameSpec = isDeepStrictEqual(spec, object.spec);
  const isSame = isSameSpec && object.file === file && isDeepStrictEqual(annotations, object.annotations);
  if (isSame) return object;
  const generation = isSameSpec ? object.generation : Math.max(object.generation + 1, nowMs);
  return { ...object, file, annotations, spec, generation };
}

/** The generation starts at the time of loading, so that it does not start at 1 again after the state was lost. */
const created = (
  { kind, namespace, name, annotations, spec }: Desired,
  file: string,
  nowMs: number,
  uid: string,
): StoredObject => ({
  kind,
  namespace,
  name,
  file,
  uid,
  generation: nowMs,
  creationTimestamp: new Date(nowMs).toISOString(),
  finalizers: [],
  annotations,
  spec,
  status: PENDING_STATUS,
});

function duplicate(id: string, { file, index }: { file: string; index: number }, other: string): DocumentProblem {
  const message = `${id} is already in ${other}, which is in force. Remove or rename one of the two.`;
  return { file, document: index + 1, line: 1, object: id, location: "metadata.name", message };
}
