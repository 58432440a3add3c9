import { jitterMs } from "../../../core/backoff.ts";
import type { Kind } from "../../../core/manifests/index.ts";
import { formatKey, type ObjectKey } from "../../runtime/object-key.ts";
import type { ManifestObject } from "../../source/contract.ts";
import type { Plan } from "../plan.ts";

/*
 * What is remembered of an object that the store has as its manifest says, so that looking at it again costs no call. The store's
 * digests (managed.listDigests), asked for by poll.ts, say whether that is still so:
 *
 *   unknown   a reconcile reads the store; finds everything as it should be, and knows the digest of what it read → settled
 *   settled   a list of digests has the same one → settled, and known to be so since that list was asked for
 *             another digest or none, a change of a manifest that concerns it, or no list for a resync period → unknown
 *             after some hours, whatever the digests say → unknown
 *
 * It is an optimization alone: forgetting an object costs some calls, and nothing else depends on it.
 */

/** The kinds whose objects have a digest, by their names in the API. */
export const DIGESTED = {
  Role: "role",
  RatelimitNamespace: "namespace",
  RatelimitOverride: "override",
} as const satisfies Partial<Record<Kind, string>>;
export type DigestedKind = keyof typeof DIGESTED;
export const isDigested = (kind: Kind): kind is DigestedKind => kind in DIGESTED;

export interface Settled {
  /** The object, when it was found as its manifest says. */
  readonly object: ManifestObject;
  readonly plan: Plan<unknown>;
  /** Of what the store had at `seenAtMs` or before. */
  readonly digest: string;
  /** When the store was last known to have that. */
  readonly seenAtMs: number;
}

export interface SettledObjects {
  /** Before the store is read for an object. Returns the number of the look, which no other one has. */
  begin(object: ManifestObject): number;
  /** Ignored when the object was forgotten since the look began: it may have missed what that was for. */
  settle(settled: Settled, look: number): void;
  forget(kind: Kind, key: ObjectKey): void;
  /** Returns what was found; undefined when the store is to be read. */
  recall(object: ManifestObject, nowMs: number): Settled | undefined;
  /** The settled objects of a kind. */
  list(kind: DigestedKind): readonly Settled[];
  /**
   * Takes in what a list that was asked for at `atMs` has of an object that was settled then; undefined when it is not in the list.
   * @returns whether the object must be reconciled.
   */
  show(settled: Settled, digest: string | undefined, atMs: number): boolean;
}

/** Each object is read again after three to six hours, at the usual resync period: in case a digest does not show something. */
const PERIODS = 72;

export function createSettledObjects(resyncMs: number, random: () => number = Math.random): SettledObjects {
  const settledBy = new Map<Kind, Map<string, Settled & { readonly untilMs: number }>>();
  /** The number of the look of each object that is under way, or settled. */
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

    settle: (settled, look) => {
      const { kind, metadata } = settled.object;
      if (begun.get(idOf(kind, metadata)) !== look) return;
      const untilMs = settled.seenAtMs + jitterMs(PERIODS * resyncMs, 0.5, random);
      of(kind).set(formatKey(metadata), { ...settled, untilMs });
    },

    forget,

    recall: (object, nowMs) => {
      const { uid, generation, deletionTimestamp } = object.metadata;
      const settled = of(object.kind).get(formatKey(object.metadata));
      if (settled === undefined || deletionTimestamp !== undefined) return undefined;
      const known = settled.object.metadata;
      if (known.uid !== uid || known.generation !== generation) return undefined;
      return nowMs - settled.seenAtMs < resyncMs && nowMs < settled.untilMs ? settled : undefined;
    },

    list: (kind) => [...of(kind).values()],

    show: (settled, digest, atMs) => {
      const { kind, metadata } = settled.object;
      const now = of(kind).get(formatKey(metadata));
      // Forgotten or read since: what the list has is older than that.
      if (now === undefined || now !== settled) return false;
      if (digest !== settled.digest) {
        forget(kind, metadata);
        return true;
      }
      of(kind).set(formatKey(metadata), { ...now, seenAtMs: atMs });
      return false;
    },
  };
}
