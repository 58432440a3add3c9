import { isDeepStrictEqual } from "node:util";
import { PENDING_STATUS } from "../../../core/manifests/conditions.ts";
import type { Kind } from "../../../core/manifests/index.ts";
import type { Desired, DocumentProblem, ReadDocument } from "./documents.ts";

/** An object of the directory, in the form in which the Kubernetes API server would store it. */
export interface StoredObject {
  readonly kind: Kind;
  readonly namespace: string;
  readonly name: string;
  /** File that contains the object. If several documents define the object, the one in this file applies. */
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
  /** Identities of objects whose document is missing and that are not being deleted yet. */
  readonly missing: readonly string[];
  readonly problems: readonly DocumentProblem[];
}

export interface MergeInput {
  readonly objects: Objects;
  /** Documents of each readable file, sorted by file name. */
  readonly files: ReadonlyMap<string, readonly ReadDocument[]>;
  readonly nowMs: number;
  readonly makeUid: () => string;
}

/**
 * Returns the objects after a scan. If two documents have the same identity, they define one object, and the document in the object's
 * current file applies. (Conflicts between two objects that claim one stored name are resolved in reconcilers/claims.ts.) An object without
 * a document is listed as missing and not deleted, because an editor may briefly remove a file while saving it. If a document is invalid,
 * its last valid version stays active. If the identity of a document is unreadable, all objects of its file stay.
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
        const isActive = objects.get(id)?.file === file && other?.file !== file;
        if (other === undefined || isActive) chosen.set(id, { desired, file, index });
        const loser = other === undefined ? undefined : isActive ? other : { file, index };
        if (loser !== undefined) problems.push(duplicate(id, loser, isActive ? file : (other?.file ?? file)));
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

/** Returns the updated object. An object that is being deleted stays unchanged; after the deletion, its document creates a new object. */
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

/** Creates an object. Its generation starts with the load time, so that it does not restart at 1 if the state is lost. */
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
  const message = `${id} is already in ${other}, which is active. Remove or rename one of the two.`;
  return { file, document: index + 1, line: 1, object: id, location: "metadata.name", message };
}
