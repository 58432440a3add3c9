import { randomUUID } from "node:crypto";
import { type FSWatcher, watch } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import type { Kind } from "../../core/manifests/index.ts";
import type { ObjectKey } from "../runtime/object-key.ts";
import type { ManifestChange, ManifestObject, ManifestSource } from "./contract.ts";
import { type DocumentProblem, identityOf, type ReadDocument, readDocuments } from "./directory/documents.ts";
import { mergeDocuments, type Objects, type StoredObject } from "./directory/merge.ts";
import { createDirectorySecrets } from "./directory/secrets.ts";
import { createStateWriter, loadState } from "./directory/state.ts";

/** Delay after the first event of a change, so that several writes of one save cause a single read. */
const DEBOUNCE_MS = 15;
/** Time after which a missing document counts as deleted. Before that, an editor may still be saving the file. */
const MISSING_MS = 300;
/** Interval of scans without an event. File events can be lost, for example on network file systems or if the folder is replaced. */
const RESCAN_MS = 5_000;

export interface DirectorySourceOptions {
  readonly dir: string;
  readonly stateDir: string;
  readonly log: Logger;
  readonly nowMs?: () => number;
}

export interface DirectorySource extends ManifestSource {
  /** Returns the current problems in documents. */
  problems(): readonly DocumentProblem[];
}

/**
 * Creates a source from the `.yaml` and `.yml` files of a folder. The source behaves like a cluster to which the files are applied after
 * each change.
 */
export function createDirectorySource(options: DirectorySourceOptions): DirectorySource {
  const { dir, stateDir, log, nowMs = Date.now } = options;
  let objects: Objects = new Map();
  let problems: readonly DocumentProblem[] = [];
  let onChange: (change: ManifestChange) => void = () => undefined;
  const readings = new Map<string, { text: string; documents: readonly ReadDocument[] }>();
  const missingSince = new Map<string, number>();
  const state = createStateWriter(stateDir, () => objects);
  const stop = new AbortController();
  let watcher: FSWatcher | undefined;
  let scanning: Promise<void> = Promise.resolve();
  let debounce: NodeJS.Timeout | undefined;
  let recheck: NodeJS.Timeout | undefined;

  const replace = (id: string, after: StoredObject | undefined) => {
    const before = objects.get(id);
    if (before === after) return;
    const next = new Map(objects);
    if (after === undefined) next.delete(id);
    else next.set(id, after);
    objects = next;
    report(before, after);
  };

  const report = (before: StoredObject | undefined, after: StoredObject | undefined) => {
    const kind = (after ?? before)?.kind;
    if (kind === undefined) return;
    onChange({
      kind,
      ...(before === undefined ? {} : { before: toManifest(before) }),
      ...(after === undefined ? {} : { after: toManifest(after) }),
    });
  };

  /** Scans the folder, one scan at a time. Throws if the folder cannot be read; in that case, no object counts as deleted. */
  const scan = (): Promise<void> => {
    scanning = scanning.catch(() => undefined).then(scanOnce);
    return scanning;
  };

  async function scanOnce(): Promise<void> {
    const files = await readFiles();
    const before = objects;
    const merged = mergeDocuments({ objects, files, nowMs: nowMs(), makeUid: randomUUID });
    objects = merged.objects;
    tellProblems(merged.problems);
    for (const [id, after] of merged.objects) if (before.get(id) !== after) report(before.get(id), after);
    markMissing(merged.missing);
    if (objects !== before) await state.save();
  }

  async function readFiles(): Promise<Map<string, readonly ReadDocument[]>> {
    const names = (await readdir(dir)).filter((name) => /^[^.].*\.ya?ml$/.test(name)).sort();
    for (const name of [...readings.keys()]) if (!names.includes(name)) readings.delete(name);
    for (const name of names) {
      const text = await readFile(join(dir, name), "utf8").catch((error: NodeJS.ErrnoException) => error);
      if (text instanceof Error) {
        // If a file was removed between the two calls, it counts as not listed. With any other error, the file exists but cannot be read.
        if (text.code === "ENOENT") readings.delete(name);
        else readings.set(name, { text: "", documents: [unreadable(name, text)] });
      } else if (readings.get(name)?.text !== text) {
        readings.set(name, { text, documents: readDocuments(name, text) });
      }
    }
    return new Map(names.flatMap((name) => toEntry(name, readings.get(name)?.documents)));
  }

  function markMissing(ids: readonly string[]): void {
    for (const id of [...missingSince.keys()]) if (!ids.includes(id)) missingSince.delete(id);
    for (const id of ids) {
      const since = missingSince.get(id);
      if (since === undefined) missingSince.set(id, performance.now());
      else if (performance.now() - since >= MISSING_MS) beginDeletion(id);
    }
    clearTimeout(recheck);
    if (missingSince.size > 0 && !stop.signal.aborted) recheck = setTimeout(hint, MISSING_MS);
  }

  function beginDeletion(id: string): void {
    missingSince.delete(id);
    const object = objects.get(id);
    if (object === undefined) return;
    const isFree = object.finalizers.length === 0;
    replace(id, isFree ? undefined : { ...object, deletionTimestamp: new Date(nowMs()).toISOString() });
  }

  function tellProblems(found: readonly DocumentProblem[]): void {
    const known = new Set(problems.map(toText));
    for (const problem of found) {
      if (!known.has(toText(problem))) log.error({ ...problem }, `refused: ${toText(problem)}`);
    }
    if (found.length === 0 && problems.length > 0) log.info({ dir }, "all manifests are readable again");
    problems = found;
  }

  const hint = () => {
    if (stop.signal.aborted) return;
    clearTimeout(debounce);
    debounce = setTimeout(() => {
      scan().catch((error: unknown) => log.error({ dir, err: error }, "the manifests are unreadable"));
    }, DEBOUNCE_MS);
  };

  const openWatcher = () => {
    if (watcher !== undefined) return;
    try {
      watcher = watch(dir, hint);
      watcher.on("error", (error) => {
        log.warn({ dir, err: error }, "the folder cannot be watched");
        watcher?.close();
        watcher = undefined;
      });
    } catch (error) {
      log.warn({ dir, err: error }, "the folder cannot be watched");
    }
  };

  async function rescan(): Promise<void> {
    while (!stop.signal.aborted) {
      await sleep(RESCAN_MS, undefined, { signal: stop.signal }).catch(() => undefined);
      openWatcher();
      hint();
    }
  }
  let rescanning: Promise<void> = Promise.resolve();

  /** Changes a stored object, unless its name belongs to another object. */
  const change = async ({ kind, metadata }: ManifestObject, to: (object: StoredObject) => StoredObject | undefined) => {
    const id = identityOf({ kind, ...metadata });
    const object = objects.get(id);
    if (object === undefined || object.uid !== metadata.uid) return;
    replace(id, to(object));
    await state.save();
  };

  return {
    start: async (listener) => {
      objects = await loadState(stateDir);
      onChange = listener;
      for (const object of objects.values()) report(undefined, object);
      openWatcher();
      await scan();
      rescanning = rescan();
    },
    get: (kind: Kind, { namespace, name }: ObjectKey) => {
      const object = objects.get(identityOf({ kind, namespace, name }));
      return object === undefined ? undefined : toManifest(object);
    },
    list: (kind) => [...objects.values()].filter((object) => object.kind === kind).map(toManifest),
    updateStatus: (object, status) => change(object, (stored) => ({ ...stored, status })),
    setFinalizers: async (object, finalizers) => {
      await change(object, (stored) => {
        const isDeleted = stored.deletionTimestamp !== undefined && finalizers.length === 0;
        return isDeleted ? undefined : { ...stored, finalizers };
      });
      // A document with the name of the deleted object, if there is one, can now create a new object.
      if (finalizers.length === 0) hint();
    },
    recordEvent: async ({ kind, metadata: { namespace, name } }, { type, reason, action, note }) => {
      log[type === "Warning" ? "warn" : "info"]({ kind, namespace, object: name, reason, action }, note);
    },
    secrets: createDirectorySecrets(stateDir),
    problems: () => problems,
    close: async () => {
      stop.abort();
      clearTimeout(debounce);
      clearTimeout(recheck);
      watcher?.close();
      await rescanning;
      await scanning.catch(() => undefined);
      clearTimeout(recheck);
    },
  };
}

const manifests = new WeakMap<StoredObject, ManifestObject>();

function toManifest(object: StoredObject): ManifestObject {
  const known = manifests.get(object);
  if (known !== undefined) return known;
  const { kind, name, namespace, uid, generation, creationTimestamp, deletionTimestamp, finalizers } = object;
  const made: ManifestObject = {
    kind,
    metadata: {
      name,
      namespace,
      uid,
      generation,
      creationTimestamp,
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
      finalizers,
      annotations: object.annotations,
    },
    spec: object.spec,
    status: object.status,
  };
  manifests.set(object, made);
  return made;
}

const toText = ({ file, document, line, object, location, message }: DocumentProblem): string =>
  `${file} document ${document} (line ${line})${object === undefined ? "" : ` ${object}`}: ${location}: ${message}`;

const toEntry = (
  name: string,
  documents: readonly ReadDocument[] | undefined,
): Array<[string, readonly ReadDocument[]]> => (documents === undefined ? [] : [[name, documents]]);

const unreadable = (file: string, { code = "" }: NodeJS.ErrnoException): ReadDocument => ({
  document: 1,
  line: 1,
  problems: [{ file, document: 1, line: 1, location: "file", message: `the file cannot be read (${code})` }],
  lineOf: () => 1,
});
