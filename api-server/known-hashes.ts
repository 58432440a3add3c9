import { BoundedCache } from "../edge/bounded-cache.ts";
import type { Projection } from "../edge/projection/contract.ts";
import type { RecordKind } from "../edge/records.ts";
import { PROPAGATION_BOUND_MS } from "./health.ts";

/*
 * What the hash of a secret leads to, for callers who bring nothing else: the workspace is known only afterwards. What was found, or
 * its absence, is dropped when the change stream reports a change of it or of its workspace, and is not used while that stream is
 * staler than the promised bound for its workspace.
 */

/** Strangers decide how many absences there are, so these have a cache of their own and never evict what exists. */
const ABSENCES_MAX = 10_000;

/** `absent`: nothing has this hash, or it was deleted, or its workspace is gone. */
export type Known<T> = T | "absent";

export interface KnownHashes<T> {
  /**
   * Returns what is cached and fresh without a promise or any I/O; otherwise reads the database. Concurrent callers with the same
   * hash share one read.
   */
  find(hash: string): Known<T> | Promise<Known<T>>;
}

export function createKnownHashes<T extends object>({
  projection,
  kind,
  entriesMax,
  workspaceOf,
  read,
}: {
  readonly projection: Pick<Projection, "onDropped" | "stalenessMs">;
  /** Of the records that have these hashes. */
  readonly kind: RecordKind;
  readonly entriesMax: number;
  readonly workspaceOf: (value: T) => string;
  readonly read: (hash: string) => Promise<T | undefined>;
}): KnownHashes<T> {
  const found = new BoundedCache<string, T>(entriesMax);
  const absent = new BoundedCache<string, "absent">(ABSENCES_MAX);
  const pending = new Map<string, Promise<Known<T>>>();

  projection.onDropped((ref) => {
    if (ref?.kind === kind) {
      found.delete(ref.id);
      absent.delete(ref.id);
      // A read in flight may have seen the state before the change: its callers use it, later ones do not.
      pending.delete(ref.id);
    } else if (ref === undefined || ref.kind === "workspace") {
      found.clear();
      absent.clear();
      pending.clear();
    }
  });

  /** Reads it, and caches the result unless it was dropped meanwhile. */
  function ask(hash: string): Promise<Known<T>> {
    const asked = read(hash)
      .then((value): Known<T> => {
        if (pending.get(hash) === asked) {
          if (value === undefined) absent.set(hash, "absent");
          else found.set(hash, value);
        }
        return value ?? "absent";
      })
      .finally(() => {
        if (pending.get(hash) === asked) pending.delete(hash);
      });
    pending.set(hash, asked);
    return asked;
  }

  return {
    find(hash) {
      const known = found.get(hash);
      // The workspace of what is absent is unknown, so its absence counts as stale as the stalest workspace.
      const isFresh = projection.stalenessMs(known && workspaceOf(known)) <= PROPAGATION_BOUND_MS;
      const cached = isFresh ? (known ?? absent.get(hash)) : undefined;
      return cached ?? pending.get(hash) ?? ask(hash);
    },
  };
}
