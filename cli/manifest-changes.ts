import type { Data, Input } from "../core/api/procedures.ts";
import type { Kind } from "../core/manifests/index.ts";
import { formatManager, requireManager } from "../core/manifests/manager.ts";
import { apiIn } from "../operator/reconcilers/raw-spec.ts";
import { deletionPolicyOf } from "../operator/reconcilers/spec.ts";
import { identityOf } from "../operator/source/directory/documents.ts";
import type { Api } from "./api/client.ts";
import { ApiRefusal } from "./api/refusals.ts";
import { type Io, UsageError } from "./command.ts";
import { printable, printableJson } from "./fields.ts";
import { type ManifestSet, mayUse, readManifests, referencesOf, type SetObject, sayProblem } from "./manifests.ts";
import { counted } from "./values.ts";

/* Applies and deletes a set of manifests through the API, one call per object, and prints what changed. */

type AppliedKind = Input<"managed.applyObject">["kind"];

/** Kinds in the order in which they are applied: referenced kinds come first. They are deleted in the reverse order. */
const ORDER: readonly Kind[] = ["RatelimitNamespace", "Role", "ApiKeyPolicy", "RatelimitOverride"];

const isApplied = (object: SetObject): boolean => ORDER.includes(object.kind);

export interface Change {
  /** Object such as `Role shop/editor`. */
  readonly object: string;
  readonly action: "created" | "updated" | "unchanged" | "deleted" | "released" | "absent" | "failed";
  readonly ids: Data<"managed.applyObject">["ids"];
  readonly changes: Data<"managed.applyObject">["changes"];
  readonly warnings: readonly { readonly path: string; readonly message: string }[];
  readonly error?: {
    /** Kind of the API error. */
    readonly kind: string;
    readonly message: string;
    /** File of the rejected field; `undefined` for a pruned object, which has no manifest. */
    readonly file?: string;
    readonly line?: number;
  };
}

/** Shape of the `--json` output. */
export const CHANGES_SHAPE =
  '{"objects":[{"object","action","ids","changes":[{"path","old","new"}],"warnings":[{"path","message"}],"error"}]}';

/** Reads a set to apply or delete. Prints its notes and problems; returns `undefined` if it has problems. */
export async function readSet(
  paths: readonly string[],
  options: { readonly strict: boolean },
  io: Io,
): Promise<ManifestSet | undefined> {
  const set = await readManifests(paths, io, options);
  for (const note of set.notes) io.note(printable(sayProblem(note)));
  for (const problem of set.problems) io.note(printable(sayProblem(problem)));
  if (set.problems.length > 0) {
    io.note(`${counted(set.problems.length, "problem")}; nothing is changed`);
    return undefined;
  }
  for (const { file, line, metadata, kind } of set.objects) {
    if (kind !== "ApiKey") continue;
    io.note(printable(`${file}:${line}: ${metadata.uid} is skipped: the Secret of an ApiKey needs a cluster`));
  }
  return set;
}

/** Returns the first part of the set's manager names, `cli.<name>`. Throws `UsageError` for an invalid name. */
export function firstPartOf(name: string): string {
  if (!/^[a-zA-Z0-9-]{1,63}$/.test(name)) {
    throw new UsageError("invalid value for --name: must be 1 to 63 letters, digits and -");
  }
  return `cli.${name}`;
}

/** Throws an error unless the root key belongs to the workspace with this id or name. */
export async function requireWorkspace(api: Api, workspace: string | undefined): Promise<void> {
  if (workspace === undefined) return;
  const { data } = await api.call("workspaces.getWorkspace", {});
  if (data.id === workspace || data.name === workspace) return;
  throw new Error(`the root key belongs to the workspace ${data.name} and not to ${workspace}; nothing is changed`);
}

const managerOf = (first: string, { kind, metadata }: Pick<SetObject, "kind" | "metadata">): string =>
  formatManager({ cluster: first, kind, namespace: metadata.namespace, name: metadata.name });

interface Run {
  readonly api: Api;
  readonly first: string;
  readonly dryRun: boolean;
}

/** Applies the objects of a set in order. A refused object does not stop the others; an unavailable API does. */
export async function* applySet(objects: readonly SetObject[], { api, first, dryRun }: Run): AsyncGenerator<Change> {
  const created = new Set<SetObject>();
  for (const kind of ORDER) {
    for (const object of objects.filter((one) => one.kind === kind)) {
      const references = referencesOf(object, objects);
      const apply = (targets: readonly SetObject[]): Promise<Change> => {
        const body = {
          manager: managerOf(first, object),
          kind: kind as AppliedKind,
          spec: object.spec as Record<string, unknown>,
          mayReferTo: [...new Set(targets)].filter((one) => isForeign(one, object)).map((one) => managerOf(first, one)),
          onlyIfManaged: false,
          dryRun,
        };
        return outcomeOf(object.metadata.uid, object, async () => {
          const { data } = await api.call("managed.applyObject", body);
          const { outcome: action, ids, changes, warnings } = data;
          return { action, ids, changes, warnings };
        });
      };
      const targets = references.flatMap(({ target }) => target ?? []);
      let change = await apply(targets);
      const apiId = kind === "ApiKeyPolicy" ? apiIn(object).id : undefined;
      if (change.error?.kind === "reference_not_allowed" && apiId !== undefined) {
        // Asks the API which object manages the API with this id, because the manifests do not contain this.
        const { manager } = (await api.call("managed.getObject", { kind: "api", id: apiId })).data;
        const owner = objects.find((one) => managerOf(first, one) === manager);
        if (owner !== undefined) change = await apply([...targets, owner]);
      }
      if (change.action === "created") created.add(object);
      // In a dry run, objects that a real run would have created do not exist.
      const refersToCreated = references.some(({ target }) => target !== undefined && created.has(target));
      const isWaiting = dryRun && change.error?.kind === "ratelimit_namespace_not_found" && refersToCreated;
      yield isWaiting ? { ...NOTHING, object: object.metadata.uid, action: "created" } : change;
    }
  }
}

/** Whether an object is in a different Kubernetes namespace than `from`, but allows references from there. */
const isForeign = (object: SetObject, { metadata: from }: SetObject): boolean =>
  object.metadata.namespace !== from.namespace && mayUse(object, from.namespace);

/** A stored object to delete, with its manifest if there is one. */
export interface Doomed {
  readonly manager: string;
  readonly object: SetObject | undefined;
}

/** Returns the objects of a set, in the order in which they are deleted. */
export const doomedOf = (objects: readonly SetObject[], first: string): Doomed[] =>
  inReverse(objects.filter(isApplied).map((object) => ({ manager: managerOf(first, object), object })));

const inReverse = (doomed: readonly Doomed[]): Doomed[] => {
  const rank = ({ manager }: Doomed) => ORDER.indexOf(requireManager(manager).kind as Kind);
  return [...doomed].sort((a, b) => rank(b) - rank(a));
};

const DIGESTED = ["role", "namespace", "override"] as const;

/** Returns the stored objects whose manager names begin with `first` and that are not in the set. */
export async function findPruned(
  objects: readonly SetObject[],
  { api, first }: Omit<Run, "dryRun">,
): Promise<Doomed[]> {
  const kept = new Set(objects.map((object) => managerOf(first, object)));
  const managers: (string | undefined)[] = [];
  for (const kind of DIGESTED) {
    for await (const { manager } of itemsOf(api, "managed.listDigests", { kind, cluster: first }))
      managers.push(manager);
  }
  for await (const { manager } of itemsOf(api, "policies.listStatus", { cluster: first })) managers.push(manager);
  const pruned = managers.filter((manager) => manager !== undefined).filter((manager) => !kept.has(manager));
  return inReverse(pruned.map((manager) => ({ manager, object: undefined })));
}

const PAGE = 500;
/** Maximum number of pages: enough for 100,000 objects of a kind. */
const PAGES_MAX = 200;

async function* itemsOf<P extends "managed.listDigests" | "policies.listStatus">(
  api: Api,
  list: P,
  body: Omit<Input<P>, "limit" | "cursor">,
): AsyncGenerator<Data<P>[number]> {
  let cursor: string | undefined;
  for (let page = 0; page < PAGES_MAX; page++) {
    const input = { ...body, limit: PAGE, ...(cursor === undefined ? {} : { cursor }) } as unknown as Input<P>;
    const { data, next } = await api.call(list, input);
    yield* data as Data<P>[number][];
    cursor = next;
    if (cursor === undefined) return;
  }
  throw new Error(`${list} has more than ${PAGES_MAX} pages`);
}

/** Deletes or releases objects in order, following `spec.deletionPolicy` or, without a manifest, the default of the kind. */
export async function* deleteAll(
  doomed: readonly Doomed[],
  { api, dryRun }: Omit<Run, "first">,
): AsyncGenerator<Change> {
  for (const { manager, object } of doomed) {
    const kind = requireManager(manager).kind as AppliedKind;
    const deletionPolicy = object && deletionPolicyOf(object);
    const body = { manager, kind, ...(deletionPolicy === undefined ? {} : { deletionPolicy }), dryRun };
    yield await outcomeOf(labelOf(manager), object, async () => {
      const { data } = await api.call("managed.deleteObject", body);
      return { ...NOTHING, action: data.outcome, ids: data.ids };
    });
  }
}

const labelOf = (manager: string): string => identityOf(requireManager(manager));

/** Kinds of objects whose deletion can affect keys: an API owns keys, and keys have roles. */
const OF_KEYS: ReadonlySet<string> = new Set(["ApiKeyPolicy", "Role"]);

const affectsKeys = ({ manager }: Doomed): boolean => OF_KEYS.has(requireManager(manager).kind);

const NOTHING: Pick<Change, "ids" | "changes" | "warnings"> = { ids: {}, changes: [], warnings: [] };

/** Statuses of error responses that concern only one object. Any other error ends the run. */
const OF_ONE: ReadonlySet<number> = new Set([400, 403, 404, 409, 412]);

/**
 * Returns the change that `call` makes or, if the API rejects it, a failed change, located at the rejected field of the manifest if
 * possible.
 */
async function outcomeOf(
  object: string,
  manifest: SetObject | undefined,
  call: () => Promise<Omit<Change, "object">>,
): Promise<Change> {
  try {
    return { object, ...(await call()) };
  } catch (error) {
    if (!(error instanceof ApiRefusal) || !OF_ONE.has(error.status) || error.kind === "") throw error;
    const { kind, message, faults } = error;
    const location = faults[0]?.location.replace(/^body\./, "");
    const line = location === undefined ? manifest?.line : manifest?.lineOf(location);
    const place = manifest === undefined || line === undefined ? {} : { file: manifest.file, line };
    return { ...NOTHING, object, action: "failed", error: { kind, message, ...place } };
  }
}

const MARKS: Readonly<Record<Change["action"], { readonly mark: string; readonly color: number }>> = {
  created: { mark: "+", color: 32 },
  updated: { mark: "~", color: 33 },
  deleted: { mark: "-", color: 31 },
  released: { mark: "-", color: 31 },
  failed: { mark: "!", color: 31 },
  unchanged: { mark: "=", color: 0 },
  absent: { mark: "=", color: 0 },
};

const VALUE_CHARS_MAX = 200;

/** Prints changes as they happen, and then a summary. Returns the changes. */
export async function printChanges(
  changes: AsyncIterable<Change>,
  { json, dryRun }: { readonly json: boolean; readonly dryRun: boolean },
  io: Io,
): Promise<Change[]> {
  const isColored = io.columns !== undefined && !io.env.NO_COLOR;
  const paint = (text: string, color: number) => (isColored && color !== 0 ? `\u001b[${color}m${text}\u001b[0m` : text);
  const done: Change[] = [];
  try {
    for await (const change of changes) {
      done.push(change);
      if (json || change.action === "unchanged" || change.action === "absent") continue;
      const { mark, color } = MARKS[change.action];
      const { object, action, error } = change;
      const where = error?.file === undefined ? "" : `${error.file}:${error.line}: `;
      const how = error === undefined ? action : `failed: ${where}${error.message}`;
      io.out(paint(printable(`${mark} ${object} ${dryRun && error === undefined ? "would be " : ""}${how}`), color));
      for (const { path, old, new: next } of change.changes) {
        io.out(printable(`    ${path}: ${shown(old)}→ ${shown(next)}`.trimEnd()));
      }
      for (const { path, message } of change.warnings) io.note(printable(`warning: ${object}: ${path}: ${message}`));
    }
  } finally {
    if (json) io.out(printableJson({ objects: done }));
    else io.out(summaryOf(done, dryRun));
  }
  return done;
}

function shown(value: unknown): string {
  if (value === undefined) return "";
  const text = JSON.stringify(value);
  return `${text.length > VALUE_CHARS_MAX ? `${text.slice(0, VALUE_CHARS_MAX)}…` : text} `;
}

function summaryOf(changes: readonly Change[], dryRun: boolean): string {
  const counts = Object.groupBy(changes, ({ action }) => action);
  const parts = Object.entries(counts).map(([action, of]) => `${of.length} ${action}`);
  return `${parts.length === 0 ? "nothing to do" : parts.join(", ")}${dryRun ? " (dry run)" : ""}`;
}

/** Returns the exit code: 1 if an object failed, 2 for differences on a dry run, otherwise 0. */
export function exitCodeOf(changes: readonly Change[], dryRun: boolean): number {
  if (changes.some(({ action }) => action === "failed")) return 1;
  return dryRun && changes.some(({ action }) => action !== "unchanged" && action !== "absent") ? 2 : 0;
}

/** Asks the person to confirm the deletion of objects that keys depend on. Without confirmation, prints a note and returns false. */
export async function mayDelete(doomed: readonly Doomed[], yes: boolean, io: Io): Promise<boolean> {
  const affected = doomed.filter(affectsKeys);
  if (yes || affected.length === 0) return true;
  for (const { manager } of affected) io.note(printable(`${labelOf(manager)} may own keys, or keys may have it`));
  if (io.input?.isTerminal !== true) {
    io.note("nothing is changed; delete them with --yes");
    return false;
  }
  const answer = await io.input.ask(`delete ${counted(affected.length, "object")}? [y/N] `);
  if (/^y(es)?$/i.test(answer.trim())) return true;
  io.note("nothing is changed");
  return false;
}
