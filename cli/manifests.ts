import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { ApiKeyPolicySpec } from "../core/manifests/api-key-policy.ts";
import { inspectManifest, type ManifestProblem } from "../core/manifests/check.ts";
import { API_VERSION, GROUP, type Kind } from "../core/manifests/index.ts";
import { RatelimitNamespaceSpec } from "../core/manifests/ratelimit-namespace.ts";
import { claimOf } from "../operator/reconcilers/claims.ts";
import { limitedIn } from "../operator/reconcilers/indexes.ts";
import { namespaceNameIn, namespaceRefOf, policyRefOf } from "../operator/reconcilers/raw-spec.ts";
import { mayRefer } from "../operator/reconcilers/spec.ts";
import type { ObjectKey } from "../operator/runtime/object-key.ts";
import type { ManifestObject } from "../operator/source/contract.ts";
import {
  type DocumentProblem,
  identityOf,
  type ReadDocument,
  readDocuments,
} from "../operator/source/directory/documents.ts";
import { type Io, UsageError } from "./command.ts";

/*
 * Reads a set of manifests for commands: from files, from standard input, or from a directory, of which it reads the same files as `kubectl
 * apply -f`. Checks each manifest, and checks the set as a whole with the operator's rules.
 */

const INPUT_BYTES_MAX = 16 * 1024 * 1024;

/** A valid manifest of the set. */
export interface SetObject extends ManifestObject {
  readonly file: string;
  /** Position of the document in its file, starting with 1. */
  readonly document: number;
  readonly line: number;
  /** Returns the line of a field, such as `spec.name`. */
  lineOf(location: string): number;
}

export interface ManifestSet {
  /** Number of files. */
  readonly files: number;
  /** Valid manifests, in the order of the input. */
  readonly objects: readonly SetObject[];
  readonly problems: readonly DocumentProblem[];
  readonly warnings: readonly DocumentProblem[];
  /** Documents that are skipped, and references to objects outside of the set. */
  readonly notes: readonly DocumentProblem[];
}

export interface ReadOptions {
  /** Whether documents of other API groups are problems instead of notes. */
  readonly strict?: boolean;
}

/** Reads and checks manifests. Throws `UsageError` for a path that does not exist and for a directory without manifest files. */
export async function readManifests(
  paths: readonly string[],
  io: Pick<Io, "input">,
  { strict = false }: ReadOptions = {},
): Promise<ManifestSet> {
  let files = 0;
  const objects: SetObject[] = [];
  const problems: DocumentProblem[] = [];
  const warnings: DocumentProblem[] = [];
  const notes: DocumentProblem[] = [];
  for (const path of paths) {
    let isEmpty = true;
    for (const { file, text } of path === "-" ? [await readInput(io)] : filesOf(path)) {
      files += 1;
      for (const read of readDocuments(file, text)) {
        if (isForeign(read)) {
          (strict ? problems : notes).push(skipped(file, read));
          continue;
        }
        isEmpty = false;
        problems.push(...read.problems);
        const object = toObject(file, read);
        if (object === undefined) continue;
        const found = inspect(object);
        problems.push(...found.problems);
        warnings.push(...found.warnings);
        objects.push(object);
      }
    }
    if (isEmpty) problems.push({ file: path, document: 1, line: 1, location: "file", message: "contains no manifest" });
  }
  const inSet = checkSet(objects);
  return {
    files,
    objects,
    problems: [...problems, ...inSet.problems],
    warnings,
    notes: [...notes, ...inSet.notes],
  };
}

async function readInput({ input }: Pick<Io, "input">): Promise<{ file: string; text: string }> {
  if (input === undefined || input.isTerminal)
    throw new UsageError("-f - reads standard input: pipe manifests into it");
  return { file: "standard input", text: await input.read(INPUT_BYTES_MAX) };
}

function filesOf(path: string): { file: string; text: string }[] {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined) throw new UsageError(`there is no file or directory ${resolve(path)}`);
  const files = stat.isDirectory()
    ? readdirSync(path)
        .filter((name) => /^[^.].*\.(?:ya?ml|json)$/.test(name))
        .sort()
        .map((name) => join(path, name))
    : [path];
  if (files.length === 0) throw new UsageError(`${path} has no .yaml, .yml or .json file`);
  return files.map((file) => ({ file, text: readFileSync(file, "utf8") }));
}

/** Whether a document is an object of another API group, such as a Deployment beside its policy. */
const isForeign = ({ apiVersion, id }: ReadDocument): boolean =>
  apiVersion !== undefined && id !== undefined && apiVersion !== GROUP && !apiVersion.startsWith(`${GROUP}/`);

const skipped = (file: string, { document, line, id, apiVersion }: ReadDocument): DocumentProblem => ({
  ...{ file, document, line },
  ...(id === undefined ? {} : { object: id }),
  location: "apiVersion",
  message: `${apiVersion} is not a kind of Postern; the object is skipped`,
});

function toObject(file: string, { desired, document, line, lineOf }: ReadDocument): SetObject | undefined {
  if (desired === undefined) return undefined;
  const { kind, namespace, name, annotations, spec } = desired;
  const id = identityOf(desired);
  const metadata = { name, namespace, uid: id, generation: 1, creationTimestamp: "", finalizers: [], annotations };
  return { kind, metadata, spec, status: undefined, file, document, line, lineOf };
}

const at = (object: SetObject, location: string, message: string): DocumentProblem => ({
  file: object.file,
  document: object.document,
  line: object.lineOf(location),
  object: object.metadata.uid,
  location,
  message,
});

function inspect(object: SetObject): Record<"problems" | "warnings", DocumentProblem[]> {
  const { kind, metadata, spec } = object;
  const { name, namespace } = metadata;
  const { problems, warnings } = inspectManifest({
    apiVersion: API_VERSION,
    kind,
    metadata: { name, namespace },
    spec,
  });
  const locate = ({ location, message }: ManifestProblem) => at(object, location, message);
  return { problems: problems.map(locate), warnings: warnings.map(locate) };
}

/** Field by which an object claims a name that it cannot share with other objects of its kind, by kind (operator/reconcilers/claims.ts). */
const CLAIMED: Readonly<Record<Kind, string>> = {
  Role: "spec.name",
  RatelimitNamespace: "spec.name",
  RatelimitOverride: "spec.identifier",
  ApiKeyPolicy: "spec.api.name",
  ApiKey: "spec.secretRef.name",
};

/** Checks the set as a whole: duplicate objects or names, and references between objects. */
function checkSet(objects: readonly SetObject[]): Record<"problems" | "notes", DocumentProblem[]> {
  const byId = new Map<string, SetObject>();
  const byClaim = new Map<string, SetObject>();
  const problems: DocumentProblem[] = [];
  for (const object of objects) {
    const { uid } = object.metadata;
    const same = byId.get(uid);
    if (same !== undefined) {
      const message = `is already defined at ${same.file}:${same.line}; remove or rename one of them`;
      problems.push(at(object, "metadata.name", message));
      continue;
    }
    byId.set(uid, object);
    const claim = claimOf(object);
    if (claim === undefined) continue;
    const other = byClaim.get(`${object.kind} ${claim}`);
    if (other === undefined) byClaim.set(`${object.kind} ${claim}`, object);
    else {
      const message = `is also that of ${other.metadata.uid} at ${other.file}:${other.line}; only one of them can be stored`;
      problems.push(at(object, CLAIMED[object.kind], message));
    }
  }
  const notes: DocumentProblem[] = [];
  for (const object of objects) {
    for (const { location, label, target } of referencesOf(object, objects)) {
      if (target === undefined) {
        const message = `${label} is not among these manifests, so it must already be stored`;
        notes.push(at(object, location, message));
      } else if (!mayUse(target, object.metadata.namespace)) problems.push(notAllowed(object, location, target));
    }
  }
  return { problems, notes };
}

export interface Reference {
  /** Field of the manifest that contains the reference. */
  readonly location: string;
  /** Referenced object, such as `RatelimitNamespace shop/limits`. */
  readonly label: string;
  /** Manifest of that object; `undefined` if the set does not contain it. */
  readonly target: SetObject | undefined;
}

/** Returns an object's references by name, both to objects of the set and to other objects. */
export function referencesOf(object: SetObject, objects: readonly SetObject[]): Reference[] {
  const named = (location: string, kind: Kind, ref: ObjectKey | undefined): Reference[] => {
    if (ref === undefined) return [];
    const label = identityOf({ kind, ...ref });
    return [{ location, label, target: objects.find(({ metadata }) => metadata.uid === label) }];
  };
  if (object.kind === "RatelimitOverride") {
    return named("spec.namespaceRef.name", "RatelimitNamespace", namespaceRefOf(object));
  }
  if (object.kind === "ApiKey") return named("spec.policyRef.name", "ApiKeyPolicy", policyRefOf(object));
  if (object.kind !== "ApiKeyPolicy") return [];
  return [...new Set(limitedIn(object))].map((name) => ({
    location: "spec.rules",
    label: `the rate-limit namespace ${name}`,
    target: objects.find((one) => one.kind === "RatelimitNamespace" && namespaceNameIn(one) === name),
  }));
}

/** Returns whether objects in the Kubernetes namespace `from` may refer to `target`. */
export const mayUse = (target: SetObject, from: string): boolean =>
  mayRefer(target.kind === "ApiKeyPolicy" ? ApiKeyPolicySpec : RatelimitNamespaceSpec, target, from);

const notAllowed = (object: SetObject, location: string, { metadata, file, line }: SetObject): DocumentProblem =>
  at(
    object,
    location,
    `${metadata.uid} at ${file}:${line} does not allow the namespace ${object.metadata.namespace}; add it to its spec.allowedNamespaces`,
  );

/** Formats a problem as `orders.yaml:12: ApiKeyPolicy shop/orders: spec.rules[0]: …`. */
export const sayProblem = ({ file, line, object = "manifest", location, message }: DocumentProblem): string =>
  `${file}:${line}: ${object}: ${location}: ${message}`;
