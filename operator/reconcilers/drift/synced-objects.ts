import { jitterMs } from "../../../core/backoff.ts";
import type { Kind } from "../../../core/manifests/index.ts";
import { formatKey, type ObjectKey } from "../../runtime/object-key.ts";
import type { ManifestObject } from "../../source/contract.ts";
import type { Result } from "../plan.ts";

/*
 * Caches objects whose stored state matches their manifests, so that reconciling them again costs no call. The digests of the
 * database (managed.listDigests), which poll.ts polls, show whether the states still match:
 *
 *   unknown   a reconcile reads the object, finds no difference, and gets the digest of what it read → synced
 *   synced    a list has the same digest → synced as of the start of that list
 *             another digest or none, a related manifest changes, or no list for a resync period → unknown
 *             after a few hours, regardless of the digests → unknown
 *
 * The cache is only an optimization: a lost entry costs a few calls and affects nothing else.
 */

/** Kinds whose objects have a digest, with their names in the API. */
export const DIGESTED = {
  Role: "role",
  RatelimitNamespace: "namespace",
  RatelimitOverride: "override",
} as const satisfies Partial<Record<Kind, string>>;
export type DigestedKind = keyof typeof DIGESTED;

export interface Settled {
  /** An object that matched its stored state when it was last read. */
  readonly object: ManifestObject;
  readonly result: Result;
  /** Digest of the stored state, read at `seenAtMs` or earlier. */
  readonly digest: string;
  /** Latest time at which the database is known to have contained this state. */
  readonly seenAtMs: number;
}

export interface SyncedObjects {
  /** Called before an object is read from the database. Returns a unique number for this read. */
  begin(object: ManifestObject): number;
  /** Caches a synced object. Ignores it if it was dropped after the read began, because the read may have missed the change. */
  settle(synced: Settled, look: number): void;
  forget(kind: Kind, key: ObjectKey): void;
  /** Returns the cached entry of an object; `undefined` if the object must be read from the database. */
  recall(object: ManifestObject, nowMs: number): Settled | undefined;
  /** Returns the synced objects of a kind. */
  list(kind: DigestedKind): readonly Settled[];
  /**
   * Compares a synced object with its digest in a list that was requested at `atMs`. Returns whether the object must be reconciled.
   * `digest` is `undefined` if the list does not contain the object.
   */
  show(synced: Settled, digest: string | undefined, atMs: number): boolean;
}

/**
 * Number of resync periods after which an object is read even if its digest is unchanged, in case the digest misses a change. At the usual
 * resync period, this is three to six hours.
 */
const PERIODS = 72;

export function createSyncedObjects(resyncMs: number, random: () => number = Math.random): SyncedObjects {
  const settledBy = new Map<Kind, Map<string, Settled & { readonly untilMs: number }>>();
  /** Number of the read that is running or whose result is cached, per object. */
  const begun = new Map<string, number>();
  let count = 0;
  const of = (kind: Kind) => {
    const there = settledBy.get(kind) ?? new Map<string, Settled & { readonly untilMs: number }>();
    settledBy.set(kind, there);
    return there;
  };
  const idOf = (kind: Kind, key: ObjectKey) => `${kind} ${formatKey(key)}`;

  const forget = (kind: Kind, key: ObjectKey) => {
    begun.delete(idOf(kind, key));
    of(kind).delete(formatKey(key));
  };

  return {
    begin: ({ kind, metadata }) => {
      forget(kind, metadata);
      count += 1;
      begun.set(idOf(kind, metadata), count);
      return count;
    },

    settle: (synced, look) => {
      const { kind, metadata } = synced.object;
      if (begun.get(idOf(kind, metadata)) !== look) return;
      const untilMs = synced.seenAtMs + jitterMs(PERIODS * resyncMs, 0.5, random);
      of(kind).set(formatKey(metadata), { ...synced, untilMs });
    },

    forget,

    recall: (object, nowMs) => {
      const { uid, generation, deletionTimestamp } = object.metadata;
      const synced = of(object.kind).get(formatKey(object.metadata));
      if (synced === undefined || deletionTimestamp !== undefined) return undefined;
      const known = synced.object.metadata;
      if (known.uid !== uid || known.generation !== generation) return undefined;
      return nowMs - synced.seenAtMs < resyncMs && nowMs < synced.untilMs ? synced : undefined;
    },

    list: (kind) => [...of(kind).values()],

    show: (synced, digest, atMs) => {
      const { kind, metadata } = synced.object;
      const now = of(kind).get(formatKey(metadata));
      // The entry was dropped or read again since the list was requested, so the list is older than the entry.
      if (now === undefined || now !== synced) return false;
      if (digest !== synced.digest) {
        forget(kind, metadata);
        return true;
      }
      of(kind).set(formatKey(metadata), { ...now, seenAtMs: atMs });
      return false;
    },
  };
}
